package import Ground

/// The description of a member that the member itself issues and all others repeat.
package struct Member: Hashable, Sendable {
    /// The member's node id, which outlives its processes.
    package var id: NodeID
    /// The process of the node that this describes.
    package var process: ProcessID
    /// The address on which the member listens for its peers.
    package var address: PeerAddress
    /// The member's share of the ring relative to the others; at least 1, constant for a process.
    package var weight: UInt16
    /// The oldest and the newest version of the peer protocol that the member supports.
    package var versions: ClosedRange<UInt16>
    /// The duties that the member accepts.
    package var role: Role

    /// The duties that a node accepts (Design, "Owners and the path of a miss").
    package struct Role: OptionSet, Hashable, Sendable {
        /// The bits as encoded in a member record.
        package let rawValue: UInt8

        /// Creates a role from its bits.
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The node has caught up with the invalidations and may own objects.
        package static let isCaughtUp = Role(rawValue: 1 << 0)
        /// The node is handing off its objects before it leaves; it no longer owns any.
        package static let isDraining = Role(rawValue: 1 << 1)
    }

    /// Creates a description from its parts.
    ///
    /// - Precondition: `weight` is at least 1.
    package init(
        id: NodeID, process: ProcessID, address: PeerAddress, weight: UInt16,
        versions: ClosedRange<UInt16>, role: Role
    ) {
        precondition(weight > 0, "a member without weight")
        self.id = id
        self.process = process
        self.address = address
        self.weight = weight
        self.versions = versions
        self.role = role
    }

    /// The weight of a node for which none is configured.
    package static let defaultWeight: UInt16 = 100
}

/// A member together with its believed state: the unit of gossip.
///
/// Of two records of one node, every member keeps the one that ``supersedes(_:)`` the other, in
/// whatever order they arrive.
package struct MemberRecord: Hashable, Sendable {
    /// The member, as it describes itself.
    package var member: Member
    /// The incarnation, raised by the member alone: its boot epoch and a count of refutations and
    /// role changes.
    package var incarnation: Incarnation
    /// The believed state of the member.
    package var state: State

    /// The believed state of a member; within one incarnation the higher value wins.
    package enum State: UInt8, Hashable, Comparable, Sendable, CaseIterable {
        /// The member responds.
        case alive = 1
        /// A member received no response; the suspected one has time to refute.
        case suspected = 2
        /// The suspected member did not refute in time; it is still dialled.
        case dead = 3
        /// The member has announced that it leaves.
        case left = 4

        /// Orders states by their precedence.
        package static func < (left: State, right: State) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    /// Creates a record from its parts.
    package init(_ member: Member, _ incarnation: Incarnation, _ state: State) {
        self.member = member
        self.incarnation = incarnation
        self.state = state
    }

    /// Returns true if this record replaces `other`, a record of the same node.
    ///
    /// The later incarnation wins; within one incarnation the process with the higher id, which
    /// only two live processes of one node can differ in; within one process the higher state.
    package func supersedes(_ other: MemberRecord) -> Bool {
        if incarnation != other.incarnation { return incarnation > other.incarnation }
        let (own, theirs) = (member.process, other.member.process)
        if own != theirs { return (own.high, own.low) > (theirs.high, theirs.low) }
        return state > other.state
    }
}

/// The version of a member's own record: its boot epoch, then a count since the start.
package struct Incarnation: Hashable, Comparable, Sendable {
    /// The boot epoch of the node's directory; 1 without a directory.
    package var epoch: UInt64
    /// The number of increments since the start, from 0.
    package var count: UInt32

    /// Creates an incarnation from its parts.
    package init(epoch: UInt64, count: UInt32) {
        self.epoch = epoch
        self.count = count
    }

    /// Orders incarnations by epoch, then by count.
    package static func < (left: Incarnation, right: Incarnation) -> Bool {
        (left.epoch, left.count) < (right.epoch, right.count)
    }
}

/// The identity of one process of a node: 128 random bits, drawn at each start and never reused.
///
/// Of two processes with one node id the newer wins. Invalidations are numbered per process id.
package struct ProcessID: Hashable, Sendable, CustomStringConvertible {
    /// The upper 64 bits.
    package let high: UInt64
    /// The lower 64 bits.
    package let low: UInt64

    /// Creates an id from its two halves.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Draws an id; `dice` is the system's generator in a node and a seeded one in a simulation.
    package init(using dice: inout some RandomNumberGenerator) {
        high = dice.next()
        low = dice.next()
    }

    /// The id as 32 lower-case hexadecimal digits.
    package var description: String {
        hexadecimal(high) + hexadecimal(low)
    }
}

/// The address on which a node listens for its peers.
///
/// The host is a canonical name, or an address without brackets.
package struct PeerAddress: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The canonical name or address, without brackets.
    package let host: String
    /// The port; not 0 if it was parsed.
    package let port: UInt16

    /// Maximum bytes of a host, the limit of every domain name (RFC 1035 §2.3.4).
    package static let hostBytesMax = 255

    /// Creates an address from its parts; `host` must be canonical, as in ``HostPort/endpoint``.
    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Creates an address from a configured one; `nil` if the host is neither a name nor an
    /// address, or the port is 0.
    package init?(_ written: HostPort) {
        guard let endpoint = written.endpoint else { return nil }
        (host, port) = endpoint
    }

    /// Creates the address of a socket.
    package init(_ address: IPAddress, port: UInt16) {
        host = address.description
        self.port = port
    }

    /// Orders addresses by port, then by the bytes of the host.
    package static func < (left: PeerAddress, right: PeerAddress) -> Bool {
        guard left.port == right.port else { return left.port < right.port }
        return left.host.utf8.lexicographicallyPrecedes(right.host.utf8)
    }

    /// The address as written in settings, with brackets around an IPv6 address.
    package var description: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
