import NIOCore
import Wire

/// The body of one request on its way from the caller to a connection: counted, and held while
/// there is no connection.
///
/// Invariant: `remaining` is the missing part of a body with a length; other framings do not use
/// it.
struct OutgoingBody {
    private enum State {
        /// More pieces may be appended.
        case open
        /// The body is complete.
        case complete
        /// The origin does not want the rest.
        case stopped
    }

    private let framing: RequestBodyFraming
    private var state: State
    private var remaining: UInt64 = 0
    /// Pieces that are not yet written to a connection.
    private var pendingPieces: [ByteBuffer] = []
    private var trailers = Trailers()
    /// True once ``takePart()`` has returned the end.
    private var isEndTaken: Bool

    init(_ framing: RequestBodyFraming) {
        self.framing = framing
        state = framing.isEmpty ? .complete : .open
        isEndTaken = framing.isEmpty
        if case .length(let count) = framing { remaining = count }
    }

    var isOpen: Bool { state == .open }
    var isComplete: Bool { state == .complete }

    /// Appends a piece; ignores bytes beyond the announced length, and everything after the end.
    mutating func append(_ piece: ByteBuffer) {
        guard state == .open, piece.readableBytes > 0 else { return }
        guard framing != .chunked, framing != .upgraded else { return pendingPieces.append(piece) }
        // The announced length is framed, so no byte beyond it may follow.
        var rest = piece
        let count = min(UInt64(piece.readableBytes), remaining)
        guard let announced = rest.readSlice(length: Int(count)) else { return }
        pendingPieces.append(announced)
        remaining -= count
        if remaining == 0 { state = .complete }
    }

    /// Marks a body without a length as complete, followed by `trailers`.
    ///
    /// A body with a length completes by itself, and never does if bytes are missing.
    mutating func end(_ trailers: Trailers) {
        // A body with missing bytes never becomes complete.
        guard state == .open, framing == .chunked || remaining == 0 else { return }
        state = .complete
        self.trailers = trailers
    }

    /// Removes and returns the pieces that wait, with the end of the body if it is reached; may be
    /// empty.
    mutating func takePart() -> OutgoingBodyPart {
        defer { pendingPieces = [] }
        var parts = OutgoingBodyPart(pieces: pendingPieces, isChunked: framing == .chunked)
        if state == .complete, !isEndTaken {
            isEndTaken = true
            parts.end = trailers
        }
        return parts
    }

    /// Stops an incomplete body: no further piece is accepted, and its end is never written.
    mutating func stop() {
        guard state == .open else { return }
        state = .stopped
    }
}

/// A part of a request body, before framing.
struct OutgoingBodyPart {
    private(set) var pieces: [ByteBuffer]
    /// The trailers, if the part includes the end of the body; written only after a chunked one.
    fileprivate(set) var end: Trailers?
    private let isChunked: Bool

    private static let lineEnd = ByteBuffer(string: "\r\n")

    init(pieces: [ByteBuffer], isChunked: Bool) {
        self.pieces = pieces
        self.isChunked = isChunked
    }

    var isEmpty: Bool { pieces.isEmpty && end == nil }

    /// The part in HTTP/1.1 framing: in chunks if the body is chunked (RFC 9112 §7.1), otherwise
    /// unchanged.
    var framed: [ByteBuffer] {
        guard isChunked else { return pieces }
        var framed: [ByteBuffer] = []
        for piece in pieces {
            let size = String(piece.readableBytes, radix: 16)
            framed += [ByteBuffer(string: size + "\r\n"), piece, Self.lineEnd]
        }
        guard let end else { return framed }
        return framed + [
            ByteBuffer(bytes: Array("0\r\n".utf8) + end.bytes + Array("\r\n".utf8))
        ]
    }
}
