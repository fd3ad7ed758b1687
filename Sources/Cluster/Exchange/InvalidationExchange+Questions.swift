package import Ground

/// What the shell may ask at any time.
extension InvalidationReplication {
    package var node: NodeID { fenceCoordinator.own }
    package var process: ProcessID { log.process }

    /// When ``ReplicationEvent/ticked`` is wanted; changes with every event.
    package var nextTick: Instant { min(log.nextTick, fenceCoordinator.nextTick) }

    /// Until when this node may serve what is fresh.
    package var window: FenceWindow {
        guard settings.fence.duration != nil, let set = voterConfiguration?.set,
            !formation.isLargeEnough(set)
        else {
            return fenceCoordinator.window
        }
        return FenceWindow(
            closedAt: min(publishedWindow.closedAt, fenceCoordinator.window.closedAt))
    }

    /// The count of invalidations applied since the start: of the stamp of a request that begins.
    package var appliedCount: UInt64 { log.appliedCount }
    /// Bytes of what was invalidated that are not on disk yet; 0 if all is.
    package var unsyncedBytes: Int { log.unsyncedBytes }

    /// What is synced here without a gap: for gossip.
    package var syncedPositions: [StreamPosition] { log.syncedPositions }

    /// `node` has told of something that this node lacks: what it asks is answered *behind*.
    package func isBehind(_ node: NodeID) -> Bool { log.lags(behind: node) }

    /// How far the record has come; nil if it is not held.
    package func receipt(of name: RecordID) -> Receipt? {
        var receipt = log.receipt(of: name)
        if settings.fence.duration == nil { receipt?.boundedAt = nil }
        receipt?.isMembershipComplete = isMembershipComplete
        return receipt
    }

    /// Everybody who can serve is in this node's receipts.
    package var isMembershipComplete: Bool { !fenceCoordinator.mayHaveUnknownNodes }

    /// The record that is held with this client's id.
    package func record(withClientID id: [UInt8]) -> RecordID? { log.record(withClientID: id) }

    /// The purges that this node took in last, at most `countMax`, the newest first.
    package func lastPurges(_ countMax: Int) -> [RecordID] { log.lastPurges(countMax) }

    /// How many of this node's records somebody has yet to confirm.
    package var pendingReceiptCount: UInt64 { log.pendingReceiptCount }

    /// How many invalidations are synced here that `node` has not confirmed.
    package func lag(of node: NodeID) -> UInt64 { log.lag(of: node) }

    /// The record, if it is held.
    package func record(_ name: RecordID) -> InvalidationRecord? { log.record(name) }

    /// The counted set that this node follows, if any.
    package var voterConfiguration: VoterConfiguration? { fenceCoordinator.consensus.configuration }
    /// This node is a member of a set that is settled.
    package var isVoter: Bool {
        fenceCoordinator.consensus.isVoter
            && fenceCoordinator.consensus.configuration?.isSettled == true
    }
    package var conflict: VoterSetConsensus.Conflict? { fenceCoordinator.consensus.conflict }
    /// What has to outlive a restart, now.
    package var persistentState: VoterSetConsensus.PersistentState {
        fenceCoordinator.consensus.persistentState
    }

    /// Counted and connected members and this node, by id.
    package func memberStatuses(at now: Instant) -> [FenceCoordinator.MemberStatus] {
        fenceCoordinator.memberStatuses(at: now)
    }

    /// This node has left by its own word, or will not; it may stop.
    package var isLeaveComplete: Bool { fenceCoordinator.isLeaveComplete }

    package var heldCount: Int { log.heldCount }
}
