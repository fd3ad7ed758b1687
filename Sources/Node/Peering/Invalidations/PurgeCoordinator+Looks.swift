import Cluster
import Ground
import Synchronization

/// What is asked of a desk, from any thread.
extension PurgeCoordinator {
    /// Changes with every invalidation.
    var appliedCount: UInt64 { appliedCounter.load(ordering: .acquiring) }

    /// Records that were applied since the start, those that are held, and members that count.
    var statistics: (applied: UInt64, held: Int, counted: Int) {
        state.withLock {
            // A change is not made before it is settled.
            let standing = $0.exchange.voterConfiguration
            let counted = (standing?.previous ?? standing?.set)?.members.count ?? 0
            return ($0.exchange.appliedCount, $0.exchange.heldCount, counted)
        }
    }
    var hasVoters: Bool { statistics.counted > 0 }
    /// Majorities are of this node, too.
    var isVoter: Bool { state.withLock { $0.exchange.isVoter } }

    func receipt(of name: RecordID) -> Receipt? {
        state.withLock { $0.exchange.receipt(of: name) }
    }

    func record(withID id: [UInt8]) -> RecordID? {
        state.withLock { $0.exchange.record(withClientID: id) }
    }

    /// The receipts of the purges that came last, at most `countMax`, the newest first.
    func recentPurges(_ countMax: Int) -> [Receipt] {
        state.withLock { state in
            state.exchange.lastPurges(countMax).compactMap { state.exchange.receipt(of: $0) }
        }
    }

    /// How many of this node's records somebody has yet to confirm.
    var receiptsPending: Int { state.withLock { Int(clamping: $0.exchange.pendingReceiptCount) } }

    /// By member, how many invalidations are synced here that it has not confirmed.
    func lags(of nodes: [NodeID]) -> [NodeID: UInt64] {
        state.withLock { state in
            Dictionary(uniqueKeysWithValues: nodes.map { ($0, state.exchange.lag(of: $0)) })
        }
    }

    /// Counted and connected members, this node included.
    func voterTable(at now: Instant) -> [FenceCoordinator.MemberStatus] {
        state.withLock { $0.exchange.memberStatuses(at: now) }
    }
}

/// What goes with questions between nodes.
extension PurgeCoordinator {
    /// What `peer` has to know before a question; nil if `connection` is no longer that on which
    /// this node speaks with it, so that nothing may be asked there.
    ///
    /// This node's own records up to `pushed` went over the connection before. When it is sent,
    /// ``told(_:to:)`` is to be told.
    func unsentInvalidations(to peer: NodeID, pushed: UInt64, on connection: PeerConnection)
        -> UnsentInvalidations?
    {
        state.withLock { state -> UnsentInvalidations? in
            guard state.connections[peer] === connection else { return nil }
            state.exchange.recordPushed(upTo: pushed, to: peer)
            return state.exchange.unsentInvalidations(to: peer)
        }
    }

    /// `untold` was sent to `peer`.
    func invalidationsSent(_ untold: UnsentInvalidations, to peer: NodeID) {
        state.withLock { $0.exchange.invalidationsSent(untold, to: peer) }
    }

    /// Takes in what came with a question.
    func queryReceived(_ question: PeerQuery, from peer: NodeID) {
        guard !question.positions.isEmpty || !question.invalidations.isEmpty else {
            // What the peer has told ahead of it.
            if inbox.withLock({ !$0.isEmpty }) { performStep { _, _, _ in } }
            return
        }
        let records = question.invalidations.compactMap { InvalidationRecord.read($0.span) }
        handle(
            .requestInvalidationsReceived(
                appliedPositions: question.positions, records: records, from: peer))
    }

    /// This node lacks something that `peer` has told of.
    func isBehind(_ peer: NodeID) -> Bool {
        state.withLock { $0.exchange.isBehind(peer) }
    }

    /// `done` is told, on any thread, when this node has all that `peer` has told of; if that is
    /// not so within `limit`, it may never be told.
    func whenCaughtUp(
        with peer: NodeID, within limit: Interval, completion: @escaping @Sendable () -> Void
    ) {
        let isCaughtUp = state.withLock { state in
            guard state.exchange.isBehind(peer) else { return true }
            let now = SystemClock.now()
            let pastCount = state.catchUpWaiters.prefix { $0.deadline <= now }.count
            state.catchUpWaiters.removeFirst(pastCount)
            state.catchUpWaiters.append(
                CatchUpWaiter(requester: peer, deadline: now + limit, done: completion))
            return false
        }
        if isCaughtUp { completion() }
    }
}
