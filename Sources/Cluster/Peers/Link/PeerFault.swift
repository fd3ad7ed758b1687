/// What a peer did that ends the connection.
package enum PeerFault: Error, Hashable, Sendable {
    /// Something is longer, or more, than it may be.
    case tooLong(PeerLimit)
    /// A payload or a part of it ends before it should, or leads out of what it lies in.
    case truncated(PeerFrameKind)
    /// A payload says what nothing can be.
    case malformed(PeerFrameKind)
    /// It does not speak this protocol.
    case notPeerProtocol
    /// There is no version that both speak; theirs.
    case noCommonVersion(ClosedRange<UInt16>)
    /// The other end is this very process.
    case selfConnection
    /// The first frame was neither HELLO nor GOODBYE.
    case helloMissing
    /// A second HELLO.
    case helloRepeated
    /// A frame about the connection that names a stream.
    case streamOnConnectionFrame(PeerFrameKind)
    /// A question on a stream of this side's parity, or not above all before it.
    case streamIDOutOfOrder(UInt32)
    /// More questions at once than were allowed.
    case tooManyStreams
    /// A frame on a stream that was never opened, or that its answerer has ended.
    case streamNotOpen(UInt32)
    /// A frame that may not come in the state that its stream is in.
    case unexpectedFrame(PeerFrameKind)
    /// DATA beyond what was granted.
    case creditExceeded(UInt32)
    /// A grant that raises what may be sent above ``PeerProtocol/windowBytesMax``.
    case creditOverflow(UInt32)
    /// DATA or CREDIT of no bytes.
    case emptyFrame(PeerFrameKind)
    /// More or fewer bytes came than the answer or its END said.
    case sizeMismatch(UInt32)
    /// Too many frames that lead nowhere; see ``FrameFloodLimiter``.
    case flood
    /// It goes on asking and does not read what it is told.
    case slowReader
}

extension PeerFault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tooLong(let limit): "above the limit: \(limit)"
        case .truncated(let kind): "a frame of type \(kind.rawValue) is cut off"
        case .malformed(let kind): "a frame of type \(kind.rawValue) makes no sense"
        case .notPeerProtocol: "this is not the peer protocol"
        case .noCommonVersion(let theirs):
            "no common version: \(theirs.lowerBound) to \(theirs.upperBound) on the other side"
        case .selfConnection: "connected to itself"
        case .helloMissing: "the first frame was not HELLO"
        case .helloRepeated: "a second HELLO"
        case .streamOnConnectionFrame(let kind): "a frame of type \(kind.rawValue) on a stream"
        case .streamIDOutOfOrder(let stream): "stream \(stream) is out of order"
        case .tooManyStreams: "too many questions at once"
        case .streamNotOpen(let stream): "stream \(stream) is not open"
        case .unexpectedFrame(let kind): "a frame of type \(kind.rawValue) is out of place"
        case .creditExceeded(let stream): "more data than granted on stream \(stream)"
        case .creditOverflow(let stream): "too much granted on stream \(stream)"
        case .emptyFrame(let kind): "a frame of type \(kind.rawValue) for no bytes"
        case .sizeMismatch(let stream): "stream \(stream) is not as long as announced"
        case .flood: "too many frames that lead nowhere"
        case .slowReader: "asks and does not read the answers"
        }
    }

    /// What the peer is told.
    package var goodbye: Goodbye {
        let code: Goodbye.Code
        switch self {
        case .noCommonVersion: code = .version
        case .selfConnection: code = .selfConnection
        case .flood, .slowReader: code = .overloaded
        default: code = .protocolFault
        }
        return Goodbye(code, description)
    }
}

/// Why something was not sent; nothing has happened, and the connection goes on.
package enum SendError: Error, Hashable, Sendable {
    /// HELLO has not come yet, or the connection ends.
    case notOpen
    /// The stream has ended, perhaps because the other side gave it up.
    case streamClosed
    /// The stream is in no state for this.
    case invalidState
    /// As many questions are open as the peer takes.
    case tooManyStreams
    /// The peer reads too slowly: as much waits as may.
    case queueFull
    /// All numbers of streams have been used: connect anew.
    case streamIDsExhausted
    /// It does not fit in a frame.
    case tooLong(PeerLimit)
}
