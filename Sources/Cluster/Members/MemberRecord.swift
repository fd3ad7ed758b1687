import Ground

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
