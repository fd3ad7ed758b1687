package import Ground

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
