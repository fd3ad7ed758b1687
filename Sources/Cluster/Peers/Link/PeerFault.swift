/// A protocol violation by the peer, which ends the connection.
package enum PeerFault: Error, Hashable, Sendable {
    /// Something exceeds a limit.
    case tooLong(PeerLimit)
    /// A payload, or a part of one, ends too early or exceeds its enclosing structure.
    case truncated(PeerFrameKind)
    /// A payload has an invalid value.
    case malformed(PeerFrameKind)
    /// The peer does not use this protocol.
    case notPeerProtocol
    /// The two sides have no common version; the value is the peer's range.
    case noCommonVersion(ClosedRange<UInt16>)
    /// The peer is this process itself.
    case selfConnection
    /// The first frame was neither HELLO nor GOODBYE.
    case helloMissing
    /// The peer sent a second HELLO.
    case helloRepeated
    /// A frame about the connection names a stream.
    case streamOnConnectionFrame(PeerFrameKind)
    /// A query uses a stream number of this side's parity, or one not above all earlier ones.
    case streamIDOutOfOrder(UInt32)
    /// The peer has more open queries than allowed.
    case tooManyStreams
    /// A frame names a stream that was never opened, or that its responder has ended.
    case streamNotOpen(UInt32)
    /// A frame is not allowed in the state of its stream.
    case unexpectedFrame(PeerFrameKind)
    /// DATA exceeds the grant.
    case creditExceeded(UInt32)
    /// A grant raises the total above ``PeerProtocol/windowBytesMax``.
    case creditOverflow(UInt32)
    /// A DATA or CREDIT frame is for no bytes.
    case emptyFrame(PeerFrameKind)
    /// The body's length differs from what the response or its END announced.
    case sizeMismatch(UInt32)
    /// The peer sent too many frames without effect; see ``FrameFloodLimiter``.
    case flood
    /// The peer keeps sending queries without reading the responses.
    case slowReader
}

extension PeerFault: CustomStringConvertible {
    /// A description for operators.
    package var description: String {
        switch self {
        case .tooLong(let limit): "above the limit: \(limit)"
        case .truncated(let kind): "a frame of type \(kind.rawValue) is truncated"
        case .malformed(let kind): "a frame of type \(kind.rawValue) is malformed"
        case .notPeerProtocol: "this is not the peer protocol"
        case .noCommonVersion(let theirs):
            "no common version: \(theirs.lowerBound) to \(theirs.upperBound) on the other side"
        case .selfConnection: "connected to itself"
        case .helloMissing: "the first frame was not HELLO"
        case .helloRepeated: "a second HELLO"
        case .streamOnConnectionFrame(let kind): "a frame of type \(kind.rawValue) on a stream"
        case .streamIDOutOfOrder(let stream): "stream \(stream) is out of order"
        case .tooManyStreams: "too many concurrent queries"
        case .streamNotOpen(let stream): "stream \(stream) is not open"
        case .unexpectedFrame(let kind): "a frame of type \(kind.rawValue) is unexpected"
        case .creditExceeded(let stream): "more data than credit on stream \(stream)"
        case .creditOverflow(let stream): "too much credit on stream \(stream)"
        case .emptyFrame(let kind): "a frame of type \(kind.rawValue) for no bytes"
        case .sizeMismatch(let stream): "stream \(stream) does not have the announced length"
        case .flood: "too many frames without effect"
        case .slowReader: "sends queries and does not read the replies"
        }
    }

    /// The GOODBYE to send to the peer.
    package var goodbye: Goodbye {
        let code: Goodbye.Code
        switch self {
        case .noCommonVersion: code = .version
        case .selfConnection: code = Goodbye.Code(.selfDial)
        case .flood, .slowReader: code = .overloaded
        default: code = .protocolFault
        }
        return Goodbye(code, description)
    }
}

/// The reason why something was not sent; the connection is unchanged and remains usable.
package enum SendError: Error, Hashable, Sendable {
    /// HELLO has not been received yet, or the connection is closing.
    case notOpen
    /// The stream has ended, perhaps aborted by the peer.
    case streamClosed
    /// The stream's state does not allow it.
    case invalidState
    /// The maximum number of queries that the peer accepts are open.
    case tooManyStreams
    /// The peer reads too slowly, and the queue is full.
    case queueFull
    /// All stream numbers are used; a new connection is needed.
    case streamIDsExhausted
    /// The message does not fit into a frame.
    case tooLong(PeerLimit)
}
