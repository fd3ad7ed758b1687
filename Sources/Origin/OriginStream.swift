import Ground
import HTTPRules
import NIOCore
import Wire

/// One question and its answer on a connection of HTTP/2.
///
/// Invariants: `held` is empty unless the hop is paused or told something just now. `ending` is
/// told when all that was held is. Nothing is written to `stream` once it is closed.
final class OriginStream: OriginCarrier {
    /// How the answer came to its end.
    private enum Ending {
        case whole
        /// The origin has not acted on the request.
        case refused
        case closed(InputEnd)
        case failed(OriginFailure)
    }

    private let link: OriginHTTP2
    private var hop: OriginHop?
    private var stream: HTTP2Stream?
    private var requestIsHead = false
    private var keepsTrailers = false
    private var framing = BodyFraming.none
    private var bodyBytes: UInt64 = 0
    private var held: CircularBuffer<AnswerStep> = []
    private var ending: Ending?
    private var isAdvancing = false
    private var sentAt = Instant.zero

    /// Bytes of a request's body that may wait for the origin's windows.
    private static let queuedBytesMax = 64 << 10

    init(on link: OriginHTTP2, for hop: OriginHop) {
        self.link = link
        self.hop = hop
    }

    // MARK: The request

    func send(_ request: OriginFetchRequest, _ body: OutgoingParts) {
        requestIsHead = request.isHead
        keepsTrailers = request.origin.isNamedByOperator
        sentAt = hop?.now ?? .zero
        stream = link.begin(request, self)
        guard stream != nil else {
            // Not at once: whoever sends has not done so yet.
            ending = .refused
            hop?.later { [self] in advance() }
            return
        }
        write(body)
    }

    func write(_ body: OutgoingParts) {
        guard let stream, !stream.isClosed else { return }
        link.write(stream, body)
    }

    var takesMore: Bool {
        guard let stream, !stream.isClosed else { return false }
        return stream.bytesQueued < Self.queuedBytesMax
    }

    var isWritten: Bool { stream.map { $0.bytesQueued == 0 } ?? true }

    /// All that was written is on its way.
    func drained() {
        hop?.requestWritten()
        hop?.connectionTakesMore()
    }

    func foundSilent() {
        link.foundSilent(since: sentAt)
    }

    func leave(closing: Bool) {
        guard hop != nil else { return }
        hop = nil
        held.removeAll()
        if let stream, !stream.isClosed, closing { link.reset(stream) }
        link.left()
    }

    // MARK: The answer

    /// A whole head; without `linesCount` an interim one.
    func headArrived(
        _ head: Span<UInt8>, _ parser: inout ResponseParser, linesCount: Int?, hasBody: Bool
    ) {
        guard let hop, ending == nil else { return }
        hop.bytesArrived(head.count)
        parser.reset()
        switch parser.parse(head, from: 0, requestIsHead: requestIsHead) {
        case .interim(let interim, let end) where linesCount == nil && end == head.count:
            held.append(.interim(interim))
        case .head(var found, let end)
        where found.answer.lines.count == linesCount && end == head.count:
            // The stream says where the body ends; what HTTP/1.1 calls that, Wire has put there.
            if !hasBody, found.framing == .chunked || found.framing == .untilClose {
                found.framing = .none
            }
            framing = found.framing
            held.append(.head(found))
        case .refused(.headTooLarge(let bytesMax)): return fail(.headTooLarge(bytesMax: bytesMax))
        case .refused(let refusal): return fail(.malformed(refusal.sentence))
        case .incomplete, .interim, .head: return fail(.http2(.protocolError, byOrigin: false))
        }
        advance()
    }

    func bodyArrived(_ piece: ByteBuffer) {
        guard let hop, ending == nil else { return }
        let count = piece.readableBytes
        hop.bytesArrived(count)
        bodyBytes += UInt64(count)
        if framing == .none { return fail(.overlong) }
        if case .length(let length) = framing, bodyBytes > length { return fail(.overlong) }
        held.append(.body(piece))
        advance()
    }

    func answerEnded(trailers section: [UInt8]) {
        guard hop != nil, ending == nil else { return }
        if case .length(let length) = framing, bodyBytes < length {
            ending = .closed(.orderly)
            return advance()
        }
        if keepsTrailers, !section.isEmpty {
            guard let trailers = Trailers(section) else {
                return fail(.malformed("a trailer field says how the message is framed or routed"))
            }
            held.append(.trailers(trailers))
        }
        ending = .whole
        advance()
    }

    /// The stream is over: by `code`, or because the connection came to the end `input`.
    func closed(_ code: HTTP2ErrorCode, isRefused: Bool, with input: InputEnd?) {
        let stream = stream.take()
        guard hop != nil, ending == nil, let stream else { return }
        if isRefused {
            ending = .refused
        } else if let input {
            ending = .closed(input)
        } else if stream.refusal != nil {
            ending = .failed(.headTooLarge(bytesMax: link.headBytesMax))
        } else {
            let error = code == .noError ? HTTP2ErrorCode.protocolError : code
            ending = .closed(.http2(error, byOrigin: !stream.isReset && code != .noError))
        }
        advance()
    }

    private func fail(_ failure: OriginFailure) {
        ending = .failed(failure)
        advance()
    }

    func advance() {
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while let hop, !hop.isPaused, let step = held.popFirst() {
            hop.found(step, isReusable: true)
            if case .body(let piece) = step, let stream {
                link.consumed(stream, bytes: piece.readableBytes)
            }
        }
        if let hop, !hop.isPaused, held.isEmpty, let ending {
            switch ending {
            case .whole: hop.found(.end, isReusable: true)
            case .refused: hop.streamRefused()
            case .closed(let end): hop.inputClosed(end)
            case .failed(let failure): hop.found(.refused(failure), isReusable: false)
            }
        }
        link.flush()
    }
}
