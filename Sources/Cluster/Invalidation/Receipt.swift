package import Ground

/// How far one invalidation has come, as one node sees it.
package struct Receipt: Hashable, Sendable {
    package enum ConfirmationStatus: Hashable, Sendable {
        /// It has applied and synced the record; this node learnt so that long after it had the
        /// record itself.
        case confirmed(elapsed: Interval)
        /// There is a connection with it, and it has not said so.
        case pending
        /// There is no connection with it, and it has not said so.
        case unreachable(since: Instant)

        package var isConfirmed: Bool {
            if case .confirmed = self { true } else { false }
        }
    }

    package struct MemberConfirmation: Hashable, Sendable {
        package var node: NodeID
        package var status: ConfirmationStatus

        package init(_ node: NodeID, _ standing: ConfirmationStatus) {
            self.node = node
            self.status = standing
        }
    }

    package var record: InvalidationRecord
    /// When this node got or issued it.
    package var heldSince: Instant
    /// Everybody who is a member, this node included, and whoever a confirmation named as one; by
    /// node id.
    package var confirmations: [MemberConfirmation]
    /// When a majority of the members who counted then had confirmed; nil if none has.
    package var majorityAt: Instant?
    /// From then on no node serves what is covered.
    package var boundedAt: Instant?
    /// No node can serve that is not in ``lines``.
    ///
    /// That is not so for up to two fences after more than half of the counted members have started
    /// anew or were replaced: whom they had answered before nobody may know.
    package var isMembershipComplete = true

    /// Nobody is pending: waiting longer tells no more, unless somebody comes back.
    package var isSettled: Bool {
        isMembershipComplete && !confirmations.contains { $0.status == .pending }
    }
    /// Every node that can serve has it.
    ///
    /// Without a majority this node may not know who can: it has started, and met nobody yet.
    package var isConfirmedByAll: Bool {
        majorityAt != nil && isMembershipComplete && confirmations.allSatisfy(\.status.isConfirmed)
    }
}
