import NIOCore
import Wire

/// The body of one request on its way from whoever gives it to a connection: framed, counted, and
/// held while there is no connection.
///
/// Invariant: `left` is what is missing of a body with a length; no other framing uses it.
struct OutgoingBody {
    private enum State {
        /// More may be given.
        case open
        /// All of it was given.
        case whole
        /// The origin does not want the rest.
        case stopped
    }

    private let framing: RequestBody
    private var state: State
    private var left: UInt64 = 0
    /// What was given and is not on a connection yet, with its framing.
    private var held: [ByteBuffer] = []

    private static let lineEnd = ByteBuffer(string: "\r\n")

    init(_ framing: RequestBody) {
        self.framing = framing
        state = framing.isEmpty ? .whole : .open
        if case .length(let count) = framing { left = count }
    }

    var isOpen: Bool { state == .open }
    var isWhole: Bool { state == .whole }

    /// A piece was given; an empty one says nothing.
    mutating func add(_ piece: ByteBuffer) {
        let count = UInt64(piece.readableBytes)
        guard state == .open, count > 0 else { return }
        guard framing == .chunked else {
            precondition(count <= left, "\(count) bytes of a body of which \(left) are missing")
            left -= count
            if left == 0 { state = .whole }
            return held.append(piece)
        }
        held += [ByteBuffer(string: String(count, radix: 16) + "\r\n"), piece, Self.lineEnd]
    }

    /// The last piece was given.
    mutating func end(_ trailers: Trailers) {
        guard state == .open else { return }
        precondition(left == 0, "a body ends of which \(left) bytes are missing")
        state = .whole
        held.append(ByteBuffer(bytes: Array("0\r\n".utf8) + trailers.bytes + Array("\r\n".utf8)))
    }

    /// What is to be written now.
    mutating func take() -> [ByteBuffer] {
        defer { held = [] }
        return held
    }

    /// Nothing more is to be written.
    mutating func stop() {
        guard state == .open else { return }
        state = .stopped
    }
}
