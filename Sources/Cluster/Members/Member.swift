package import Ground

/// What a node says of itself, and everybody repeats.
package struct Member: Hashable, Sendable {
    package var id: NodeID
    /// The run of the node that this is about.
    package var process: ProcessID
    /// Where its peers reach it: an address or a name, with a port.
    package var address: PeerAddress
    /// Its share of the ring beside the others'; constant for a process.
    package var weight: UInt16
    /// The oldest and the newest version of the peer protocol that it speaks.
    package var versions: ClosedRange<UInt16>
    package var role: Role

    /// What a node may be asked for (DESIGN.md §7 "Owners and the path of a miss").
    package struct Role: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// It has caught up with the invalidations, and may own.
        package static let isCaughtUp = Role(rawValue: 1 << 0)
        /// It hands on what it holds, to leave; it owns nothing any more.
        package static let isDraining = Role(rawValue: 1 << 1)
    }

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

    /// The weight of a node that was told none.
    package static let defaultWeight: UInt16 = 100
}

/// What is believed of a member: the unit of gossip.
///
/// Of two records of one node the one that ``supersedes(_:)`` the other is kept, by everybody, in
/// whatever order they come.
package struct MemberRecord: Hashable, Sendable {
    package var member: Member
    /// Raised by the member alone: above its boot epoch, how often it had to say that it lives.
    package var incarnation: Incarnation
    package var state: State

    /// What is believed, in the order of what wins within one incarnation.
    package enum State: UInt8, Hashable, Comparable, Sendable, CaseIterable {
        /// It answers.
        case alive = 1
        /// Somebody had no answer; it is given time to say that it lives.
        case suspected = 2
        /// It did not say so in time. It is dialled on.
        case dead = 3
        /// It said that it goes.
        case left = 4

        package static func < (left: State, right: State) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    package init(_ member: Member, _ incarnation: Incarnation, _ state: State) {
        self.member = member
        self.incarnation = incarnation
        self.state = state
    }

    /// True if this is to be believed instead of `other`, a record of the same node.
    ///
    /// The later incarnation wins; of one incarnation the process with the higher id, which only
    /// two live processes of one node can differ in; of one process the graver state.
    package func supersedes(_ other: MemberRecord) -> Bool {
        if incarnation != other.incarnation { return incarnation > other.incarnation }
        let (own, theirs) = (member.process, other.member.process)
        if own != theirs { return (own.high, own.low) > (theirs.high, theirs.low) }
        return state > other.state
    }
}

/// The order of what a node says of itself: by its start, then by how often it spoke up since.
package struct Incarnation: Hashable, Comparable, Sendable {
    /// The boot epoch of the node's directory; 1 without a directory.
    package var epoch: UInt64
    /// 0 at the start.
    package var count: UInt32

    package init(epoch: UInt64, count: UInt32) {
        self.epoch = epoch
        self.count = count
    }

    package static func < (left: Incarnation, right: Incarnation) -> Bool {
        (left.epoch, left.count) < (right.epoch, right.count)
    }
}

/// Names one run of one node: 128 random bits drawn at each start, so that it is never used again.
///
/// Of two processes with one node id the newer wins; invalidations are numbered per process id.
package struct ProcessID: Hashable, Sendable, CustomStringConvertible {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Draws an id; `dice` is the system's generator in a node and a seeded one in a simulation.
    package init(using dice: inout some RandomNumberGenerator) {
        high = dice.next()
        low = dice.next()
    }

    /// 32 lower-case hexadecimal digits.
    package var description: String {
        hexadecimal(high) + hexadecimal(low)
    }
}
