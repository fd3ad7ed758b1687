import NIOCore
import Wire

/// The body of one request on its way from whoever gives it to a connection: counted, and held
/// while there is no connection.
///
/// Invariant: `left` is what is missing of a body with a length; no other framing uses it.
struct OutgoingBody {
    private enum State {
        /// More may be given.
        case open
        /// All of it was given.
        case complete
        /// The origin does not want the rest.
        case stopped
    }

    private let framing: RequestBodyFraming
    private var state: State
    private var remaining: UInt64 = 0
    /// What was given and is not on a connection yet.
    private var pendingPieces: [ByteBuffer] = []
    private var trailers = Trailers()
    /// The end was taken.
    private var isEndTaken: Bool

    init(_ framing: RequestBodyFraming) {
        self.framing = framing
        state = framing.isEmpty ? .complete : .open
        isEndTaken = framing.isEmpty
        if case .length(let count) = framing { remaining = count }
    }

    var isOpen: Bool { state == .open }
    var isComplete: Bool { state == .complete }

    /// A piece was given; an empty one says nothing.
    mutating func append(_ piece: ByteBuffer) {
        guard state == .open, piece.readableBytes > 0 else { return }
        guard framing != .chunked, framing != .upgraded else { return pendingPieces.append(piece) }
        // What the client has announced is framed, and not a byte more follows it.
        var rest = piece
        let count = min(UInt64(piece.readableBytes), remaining)
        guard let announced = rest.readSlice(length: Int(count)) else { return }
        pendingPieces.append(announced)
        remaining -= count
        if remaining == 0 { state = .complete }
    }

    /// The last piece was given.
    mutating func end(_ trailers: Trailers) {
        // One of which bytes are missing is never whole.
        guard state == .open, framing == .chunked || remaining == 0 else { return }
        state = .complete
        self.trailers = trailers
    }

    /// What is to be written now.
    mutating func takePart() -> OutgoingBodyPart {
        defer { pendingPieces = [] }
        var parts = OutgoingBodyPart(pieces: pendingPieces, isChunked: framing == .chunked)
        if state == .complete, !isEndTaken {
            isEndTaken = true
            parts.end = trailers
        }
        return parts
    }

    /// Nothing more is to be written.
    mutating func stop() {
        guard state == .open else { return }
        state = .stopped
    }
}

/// A part of a request's body, as it was given.
struct OutgoingBodyPart {
    private(set) var pieces: [ByteBuffer]
    /// The fields behind the body, if its end is among this; they are of a chunked one.
    fileprivate(set) var end: Trailers?
    private let isChunked: Bool

    private static let lineEnd = ByteBuffer(string: "\r\n")

    init(pieces: [ByteBuffer], isChunked: Bool) {
        self.pieces = pieces
        self.isChunked = isChunked
    }

    var isEmpty: Bool { pieces.isEmpty && end == nil }

    /// As HTTP/1.1 writes it (RFC 9112 §7.1).
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
