package import Ground

/// How far one invalidation has come, as one node sees it.
package struct Receipt: Hashable, Sendable {
    package enum Standing: Hashable, Sendable {
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

    package struct Line: Hashable, Sendable {
        package var node: NodeID
        package var standing: Standing

        package init(_ node: NodeID, _ standing: Standing) {
            self.node = node
            self.standing = standing
        }
    }

    package var record: InvalidationRecord
    /// When this node got or issued it.
    package var heldSince: Instant
    /// Everybody who is a member, this node included, and whoever a confirmation named as one; by
    /// node id.
    package var lines: [Line]
    /// When a majority of the members who counted then had confirmed; nil if none has.
    package var majorityAt: Instant?
    /// From then on no node serves what is covered.
    package var boundedAt: Instant?
    /// No node can serve that is not in ``lines``.
    ///
    /// That is not so for up to two fences after more than half of the counted members have started
    /// anew or were replaced: whom they had answered before nobody may know.
    package var isCompanyKnown = true

    /// Nobody is pending: waiting longer tells no more, unless somebody comes back.
    package var isSettled: Bool {
        isCompanyKnown && !lines.contains { $0.standing == .pending }
    }
    /// Every node that can serve has it.
    ///
    /// Without a majority this node may not know who can: it has started, and met nobody yet.
    package var isConfirmedByAll: Bool {
        majorityAt != nil && isCompanyKnown && lines.allSatisfy(\.standing.isConfirmed)
    }
}
