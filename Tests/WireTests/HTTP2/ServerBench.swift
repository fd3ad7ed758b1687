import Ground
import NIOCore
import Wire

/// A server session with its delegate, fed with hand-written frames.
final class ServerBench: HTTP2ServerDelegate {
    /// The session's callbacks, in order.
    enum Event: Hashable {
        case request(Int32, String, hasBody: Bool)
        case refused(Int32, UInt16)
        case body(Int32, String)
        case ended(Int32, String)
        case drained(Int32)
        case closed(Int32, HTTP2ErrorCode)
    }

    private(set) var session: HTTP2ServerSession?
    private(set) var events: [Event] = []
    /// The streams of the requests so far, by id.
    private(set) var streams: [Int32: HTTP2Stream] = [:]
    /// The frames sent by the session and not taken yet.
    private(set) var sent: [RawFrame] = []
    /// The last result of the session's ``receive(_:now:)``.
    private(set) var isOpen = true
    /// The number of lines of the last request.
    private(set) var lastLinesCount = 0
    /// The body length of automatic responses with status 200; `nil` for none.
    var answerBytes: Int?
    var consumes = true
    /// True if everything after a request is paused.
    var holds = false
    var now = Instant.zero

    init(_ settings: HTTP2Settings = HTTP2Settings(), answerBytes: Int? = nil) {
        self.answerBytes = answerBytes
        session = HTTP2ServerSession(settings: settings, delegate: self)
    }

    var server: HTTP2ServerSession {
        guard let session else { preconditionFailure("no session") }
        return session
    }

    /// Starts a connection; returns the server's frames.
    @discardableResult
    func greet(_ entries: [(UInt16, UInt32)] = []) -> ServerBench {
        send(RawFrame.preface)
        send([.settings(entries), .settingsAck])
        takeFrames()
        return self
    }

    func send(_ frames: [RawFrame]) {
        send(frames.flatMap(\.bytes))
    }

    func send(_ bytes: [UInt8]) {
        isOpen = server.receive(bytes.span, now: now)
    }

    func goOn() {
        isOpen = server.resumeReceiving(now: now)
    }

    /// Lets the session write until it has nothing more, at most `turn` bytes a turn.
    @discardableResult
    func takeFrames(bytesMax: Int = 1 << 20) -> [RawFrame] {
        RawFrame.all(in: takeBytes(bytesMax: bytesMax))
    }

    func takeBytes(bytesMax: Int = 1 << 20) -> [UInt8] {
        var bytes: [UInt8] = []
        while server.hasOutput {
            var buffers: [ByteBuffer] = []
            server.takeOutput(into: &buffers, bytesMax: bytesMax, now: now)
            if buffers.isEmpty { break }
            for buffer in buffers { bytes += Array(buffer.readableBytesView) }
        }
        return bytes
    }

    func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    /// Checks the windows; returns the streams stalled for that time.
    func stalled(forSeconds seconds: Int64) -> [Int32] {
        server.updateStalls(now: now)
        return server.stalledStreams(since: now - .seconds(seconds)).map(\.id).sorted()
    }

    func reset(_ id: Int32, _ code: HTTP2ErrorCode) {
        if let stream = streams[id] { server.reset(stream, code) }
    }

    func respond(_ id: Int32, _ fields: String = "", endsStream: Bool = false) {
        guard let stream = streams[id] else { return }
        let head = Array("HTTP/1.1 200 OK\r\n\(fields)\r\n".utf8)
        server.sendResponse(stream, head: head.span, endsStream: endsStream)
    }

    func write(_ id: Int32, _ count: Int) {
        guard let stream = streams[id] else { return }
        server.write(stream, ByteBuffer(repeating: UInt8(ascii: "x"), count: count))
    }

    func end(_ id: Int32) {
        if let stream = streams[id] { server.end(stream) }
    }

    private func answer(_ stream: HTTP2Stream) {
        guard let answerBytes else { return }
        respond(stream.id, endsStream: answerBytes == 0)
        guard answerBytes > 0 else { return }
        write(stream.id, answerBytes)
        end(stream.id)
    }

    // MARK: - HTTP2ServerDelegate

    func requestReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool
    ) {
        streams[stream.id] = stream
        lastLinesCount = linesCount
        if holds { server.pauseReceiving() }
        events.append(.request(stream.id, Self.text(head), hasBody: hasBody))
        answer(stream)
    }

    func requestRefused(_ stream: HTTP2Stream, _ refusal: RequestParseError, hasBody: Bool) {
        streams[stream.id] = stream
        events.append(.refused(stream.id, refusal.status))
        answer(stream)
    }

    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>) {
        events.append(.body(stream.id, Self.text(bytes)))
        if consumes { server.consume(stream, bytes: bytes.count) }
    }

    func bodyEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>) {
        events.append(.ended(stream.id, Self.text(trailers)))
    }

    func streamDrained(_ stream: HTTP2Stream) {
        events.append(.drained(stream.id))
    }

    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode) {
        streams[stream.id] = nil
        events.append(.closed(stream.id, code))
    }

    /// The text of Latin-1 bytes.
    static func text(_ bytes: Span<UInt8>) -> String {
        var text = String.UnicodeScalarView()
        for index in bytes.indices { text.append(UnicodeScalar(bytes[index])) }
        return String(text)
    }
}
