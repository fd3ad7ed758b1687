import Ground
import NIOCore
import Wire

/// The input of an HTTP/2 session: the first byte selects the side, and the second how the rest is
/// cut.
///
/// Invariants: neither side traps on any input, the parser of HTTP/1.1 finds no fault with the
/// lines of a head, the result does not depend on the pieces or on pauses, and no more streams are
/// open than were announced.
func fuzzHTTP2(_ input: [UInt8]) {
    let body = Array(input[2...])
    let piece = Int(input[1]) + 1
    if input[0] & 1 == 0 {
        let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]
        let whole = Server(pauses: false)
        whole.feed(preface + body, piece: .max)
        let pieces = Server(pauses: true)
        pieces.feed(preface + body, piece: piece)
        precondition(whole.requests == pieces.requests)
        precondition(whole.session.failure == pieces.session.failure)
    } else {
        let client = Client()
        client.feed([0, 0, 0, 4, 0, 0, 0, 0, 0] + body, piece: piece)
    }
}

/// Responds to every request with a body larger than the window, and ends one stream in four at
/// once.
private final class Server: HTTP2ServerDelegate {
    private var createdSession: HTTP2ServerSession?
    private(set) var requests = 0
    /// True if input is paused after each request.
    private let pauses: Bool

    init(pauses: Bool) {
        self.pauses = pauses
        createdSession = HTTP2ServerSession(
            settings: HTTP2Settings(concurrentStreamsMax: 8, headBytesMax: 300), delegate: self)
    }

    var session: HTTP2ServerSession {
        guard let createdSession else { preconditionFailure("no session") }
        return createdSession
    }

    func feed(_ bytes: [UInt8], piece: Int) {
        var rest = bytes[...]
        var isOpen = true
        while isOpen, !rest.isEmpty {
            isOpen = session.receive(Array(rest.prefix(piece)).span, now: .zero)
            rest = rest.dropFirst(piece)
            while session.isReceivingPaused { isOpen = session.resumeReceiving(now: .zero) }
            precondition(session.openStreamCount <= 9)
        }
        drain()
    }

    private func drain() {
        while session.hasOutput {
            var buffers: [ByteBuffer] = []
            session.takeOutput(into: &buffers, bytesMax: 30_000, now: .zero)
            if buffers.isEmpty { break }
        }
    }

    private func respond(_ stream: HTTP2Stream) {
        requests += 1
        if pauses { session.pauseReceiving() }
        session.sendResponse(
            stream, head: Array("HTTP/1.1 200 OK\r\nEtag: \"a\"\r\n\r\n".utf8).span,
            endsStream: false)
        session.write(stream, ByteBuffer(repeating: 1, count: 70_000))
        if requests % 4 == 0 { session.end(stream, trailers: Array("a: b\r\n".utf8)) }
    }

    func requestReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool
    ) {
        var parser = RequestParser()
        switch parser.parse(head, from: 0) {
        case .head(let end):
            precondition(end == head.count && parser.fields.count == linesCount)
        case .refused(.line), .incomplete: preconditionFailure("a line that is none")
        case .refused: break
        }
        respond(stream)
    }

    func requestRefused(_ stream: HTTP2Stream, _ refusal: RequestParseError, hasBody: Bool) {
        respond(stream)
    }

    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>) {
        session.consume(stream, bytes: bytes.count / 2)
    }

    func bodyEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>) {}

    func streamDrained(_ stream: HTTP2Stream) {
        session.end(stream)
    }

    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode) {}
}

/// Has sent three requests.
private final class Client: HTTP2ClientDelegate {
    private var createdSession: HTTP2ClientSession?
    private var open = 0

    init() {
        createdSession = HTTP2ClientSession(settings: .originDefaults, delegate: self)
        let head = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        for _ in 0..<3
        where session.sendRequest(head: head.span, isSecure: false, endsStream: true) != nil {
            open += 1
        }
        drain()
    }

    var session: HTTP2ClientSession {
        guard let createdSession else { preconditionFailure("no session") }
        return createdSession
    }

    func feed(_ bytes: [UInt8], piece: Int) {
        var rest = bytes[...]
        var isOpen = true
        while isOpen, !rest.isEmpty {
            isOpen = session.receive(Array(rest.prefix(piece)).span, now: .zero)
            rest = rest.dropFirst(piece)
        }
        drain()
        session.transportClosed(.cancel)
        precondition(open == 0)
    }

    private func drain() {
        while session.hasOutput {
            var buffers: [ByteBuffer] = []
            session.takeOutput(into: &buffers, bytesMax: 30_000, now: .zero)
            if buffers.isEmpty { break }
        }
    }

    func interimResponseReceived(_ stream: HTTP2Stream, status: Int, head: Span<UInt8>) {}

    func responseReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool
    ) {
        var parser = ResponseParser()
        if case .refused(.line) = parser.parse(head, from: 0, requestIsHead: false) {
            preconditionFailure("a line that is none")
        }
    }

    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>) {
        session.consume(stream, bytes: bytes.count)
    }

    func responseEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>) {}
    func streamDrained(_ stream: HTTP2Stream) {}
    func goAwayReceived(code: HTTP2ErrorCode) {}
    func settingsReceived() {}

    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode, isSafeToRetry: Bool) {
        open -= 1
    }
}
