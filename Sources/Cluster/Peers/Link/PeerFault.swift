package import Ground

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

/// The nodes that respond at an address, or connect to this one, and cannot be its peers.
///
/// For operators only: nothing that a node decides depends on it.
package struct PeerRejections: Sendable {
    /// The reason why a node cannot be a peer.
    package enum Reason: Hashable, Sendable {
        /// The two nodes have no secret in common, or the other one is not a node.
        case otherSecret
        /// The other node supports only these versions of the protocol; `nil` if it did not say.
        case noCommonVersion(ClosedRange<UInt16>?)
        /// What responds at the address does not use TLS.
        case otherProtocol
    }

    /// A node that cannot be a peer.
    package struct Rejection: Hashable, Sendable {
        /// The dialled address, or the address of a node that has dialled, without its port.
        package let address: String
        /// True if this node has dialled.
        package let isDialled: Bool
        /// The reason of the last attempt.
        package let reason: Reason
    }

    private struct Entry: Sendable {
        var reason: Reason
        /// The host of the dialled address; `nil` if the other node has dialled.
        var dialledHost: String?
        /// The time of the last attempt.
        var at: Instant
    }

    private var entries: [String: Entry] = [:]

    /// The time after which an attempt that is not repeated no longer counts: longer than any wait
    /// between two dials of one address.
    package static let lifetime = Interval.seconds(75)
    /// Maximum number of addresses; further ones are ignored.
    package static let addressesMax = 64

    /// Creates an empty table.
    package init() {}

    /// Records an attempt that failed for `reason`.
    ///
    /// - Parameters:
    ///   - address: The dialled address, or the address of the node that has dialled, without its
    ///     port.
    ///   - dialled: The dialled address; `nil` if the other node has dialled.
    ///   - reason: The reason.
    ///   - now: The current time.
    package mutating func record(
        _ address: String, dialled: PeerAddress?, _ reason: Reason, now: Instant
    ) {
        if entries.count >= Self.addressesMax {
            entries = entries.filter { now - $0.value.at <= Self.lifetime }
        }
        guard entries[address] != nil || entries.count < Self.addressesMax else { return }
        entries[address] = Entry(reason: reason, dialledHost: dialled?.host, at: now)
    }

    /// Forgets an address, because a node there is a peer.
    package mutating func clear(_ address: String) {
        entries[address] = nil
    }

    /// Returns the nodes that cannot be peers at present, by address; a node that has dialled is
    /// omitted if this node has dialled an address on its host, which says more.
    package func current(now: Instant) -> [Rejection] {
        let recent = entries.filter { now - $0.value.at <= Self.lifetime }
        let hosts = Set(recent.values.compactMap(\.dialledHost))
        return recent.filter { $0.value.dialledHost != nil || !hosts.contains($0.key) }
            .map { address, entry in
                Rejection(
                    address: address, isDialled: entry.dialledHost != nil, reason: entry.reason)
            }.sorted { $0.address < $1.address }
    }
}

extension PeerRejections.Reason {
    /// Creates the reason of a fault before HELLO; `nil` for a fault that may not occur again.
    package init?(_ fault: PeerFault) {
        switch fault {
        case .noCommonVersion(let theirs): self = .noCommonVersion(theirs)
        case .notPeerProtocol: self = .otherProtocol
        default: return nil
        }
    }
}
