import Ground
import NIOCore
import Wire

/// A client session with its delegate, against a scripted server or a session.
final class ClientBench: HTTP2ClientDelegate {
    /// The session's callbacks, in order.
    enum Event: Hashable {
        case interim(Int32, Int)
        case answer(Int32, String, hasBody: Bool)
        case body(Int32, Int)
        case ended(Int32, String)
        case drained(Int32)
        case closed(Int32, HTTP2ErrorCode, isSafeToRetry: Bool)
        case goAway(HTTP2ErrorCode)
        case settings
    }

    private var session: HTTP2ClientSession?
    private(set) var events: [Event] = []
    var consumes = true
    var now = Instant.zero

    init(_ settings: HTTP2Settings = .originDefaults) {
        session = HTTP2ClientSession(settings: settings, delegate: self)
    }

    var client: HTTP2ClientSession {
        guard let session else { preconditionFailure("no session") }
        return session
    }

    /// Reads the preface, delivers the server's SETTINGS, and makes `requests` requests.
    @discardableResult
    func greet(_ entries: [(UInt16, UInt32)] = [], requests: Int = 0) -> ClientBench {
        _ = takeBytes()
        send([.settings(entries), .settingsAck])
        _ = takeBytes()
        events = []
        for _ in 0..<requests { request() }
        _ = takeBytes()
        return self
    }

    @discardableResult
    func send(_ frames: [RawFrame]) -> Bool {
        send(frames.flatMap(\.bytes))
    }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        client.receive(bytes.span, now: now)
    }

    func takeBytes() -> [UInt8] {
        var bytes: [UInt8] = []
        while client.hasOutput {
            var buffers: [ByteBuffer] = []
            client.takeOutput(into: &buffers, bytesMax: 1 << 20, now: now)
            if buffers.isEmpty { break }
            for buffer in buffers { bytes += Array(buffer.readableBytesView) }
        }
        return bytes
    }

    func takeFrames() -> [RawFrame] { RawFrame.all(in: takeBytes()) }

    func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    @discardableResult
    func request(
        _ method: String = "GET", _ fields: String = "", endsStream: Bool = true
    ) -> HTTP2Stream? {
        let head = Array("\(method) /a?b HTTP/1.1\r\nHost: a.example\r\n\(fields)\r\n".utf8)
        return client.sendRequest(head: head.span, isSecure: true, endsStream: endsStream)
    }

    // MARK: - HTTP2ClientDelegate

    func interimResponseReceived(_ stream: HTTP2Stream, status: Int, head: Span<UInt8>) {
        events.append(.interim(stream.id, status))
    }

    func responseReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool
    ) {
        events.append(.answer(stream.id, ServerBench.text(head), hasBody: hasBody))
    }

    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>) {
        events.append(.body(stream.id, bytes.count))
        if consumes { client.consume(stream, bytes: bytes.count) }
    }

    func responseEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>) {
        events.append(.ended(stream.id, ServerBench.text(trailers)))
    }

    func streamDrained(_ stream: HTTP2Stream) {
        events.append(.drained(stream.id))
    }

    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode, isSafeToRetry: Bool) {
        events.append(.closed(stream.id, code, isSafeToRetry: isSafeToRetry))
    }

    func goAwayReceived(code: HTTP2ErrorCode) {
        events.append(.goAway(code))
    }

    func settingsReceived() {
        events.append(.settings)
    }
}
