package import Ground

/// What the shell may ask at any time.
extension InvalidationExchange {
    package var node: NodeID { keeper.own }
    package var process: ProcessID { log.process }

    /// When ``ExchangeEvent/ticked`` is wanted; changes with every event.
    package var nextTick: Instant { min(log.nextTick, keeper.nextTick) }

    /// Until when this node may serve what is fresh.
    package var window: FenceWindow {
        guard settings.fence.fence != nil, let set = standing?.set, !formation.isFormed(set) else {
            return keeper.window
        }
        return FenceWindow(closedAt: min(published.closedAt, keeper.window.closedAt))
    }

    /// The count of invalidations applied since the start: of the stamp of a request that begins.
    package var appliedCount: UInt64 { log.appliedCount }
    /// Bytes of what was invalidated that are not on disk yet; 0 if all is.
    package var unsyncedBytes: Int { log.unsyncedBytes }

    /// What is synced here without a gap: for gossip.
    package var positions: [StreamPosition] { log.positions }

    /// `node` has told of something that this node lacks: what it asks is answered *behind*.
    package func isBehind(_ node: NodeID) -> Bool { log.lags(behind: node) }

    /// How far the record has come; nil if it is not held.
    package func receipt(of name: RecordName) -> Receipt? {
        var receipt = log.receipt(of: name)
        if settings.fence.fence == nil { receipt?.boundedAt = nil }
        receipt?.isCompanyKnown = isCompanyKnown
        return receipt
    }

    /// Everybody who can serve is in this node's receipts.
    package var isCompanyKnown: Bool { !keeper.mayLackSomebody }

    /// The record that is held with this client's id.
    package func record(withID id: [UInt8]) -> RecordName? { log.record(withID: id) }

    /// The purges that this node took in last, at most `countMax`, the newest first.
    package func lastPurges(_ countMax: Int) -> [RecordName] { log.lastPurges(countMax) }

    /// How many of this node's records somebody has yet to confirm.
    package var receiptsPending: UInt64 { log.receiptsPending }

    /// How many invalidations are synced here that `node` has not confirmed.
    package func lag(of node: NodeID) -> UInt64 { log.lag(of: node) }

    /// The record, if it is held.
    package func record(_ name: RecordName) -> InvalidationRecord? { log.record(name) }

    /// The counted set that this node follows, if any.
    package var standing: CountStanding? { keeper.counted.standing }
    /// This node is a member of a set that is settled.
    package var isCounted: Bool {
        keeper.counted.isCounted && keeper.counted.standing?.isSettled == true
    }
    package var contradiction: CountedMembers.Contradiction? { keeper.counted.contradiction }
    /// What has to outlive a restart, now.
    package var memory: CountedMembers.Memory { keeper.counted.memory }

    /// Counted and connected members and this node, by id.
    package func table(at now: Instant) -> [FenceKeeper.Line] { keeper.table(at: now) }

    /// This node has left by its own word, or will not; it may stop.
    package var isLeaveOver: Bool { keeper.isLeaveOver }

    package var heldCount: Int { log.heldCount }
}
