package import Cluster
package import Ground
import Logging
import NIOCore
import Platform
import Serving
import Store
import Synchronization
import Telemetry
import Tiers

/// Thread-safe queries to the coordinator.
extension PurgeCoordinator {
    /// The number of applied invalidations, which grows with each of them.
    var appliedCount: UInt64 { appliedCounter.load(ordering: .acquiring) }

    /// The number of invalidations applied since the start, of records held in the log, and of
    /// voters.
    package var statistics: (applied: UInt64, held: Int, counted: Int) {
        state.withLock {
            // A pending change of the voter set is not effective before it is settled.
            let standing = $0.exchange.voterConfiguration
            let counted = (standing?.previous ?? standing?.set)?.members.count ?? 0
            return ($0.exchange.appliedCount, $0.exchange.heldCount, counted)
        }
    }
    /// True if the node follows a voter set, whether or not it is a voter.
    package var hasVoters: Bool { statistics.counted > 0 }
    /// True if this node is a voter of a settled voter set.
    package var isVoter: Bool { state.withLock { $0.exchange.isVoter } }

    /// Returns the receipt of a record; `nil` if the log does not hold the record.
    package func receipt(of name: RecordID) -> Receipt? {
        state.withLock { $0.exchange.receipt(of: name) }
    }

    /// Returns the record that a client has issued under `id`; `nil` if the log holds none.
    package func record(withID id: [UInt8]) -> RecordID? {
        state.withLock { $0.exchange.record(withClientID: id) }
    }

    /// Returns the receipts of the purges that this node received or issued last, at most
    /// `countMax`, the newest first.
    package func recentPurges(_ countMax: Int) -> [Receipt] {
        state.withLock { state in
            state.exchange.lastPurges(countMax).compactMap { state.exchange.receipt(of: $0) }
        }
    }

    /// The number of this node's purges that some voter has not confirmed, reachable or not.
    package var receiptsPending: Int {
        state.withLock { Int(clamping: $0.exchange.pendingReceiptCount) }
    }

    /// Returns for each of `nodes` the number of invalidations that are synced here and that the
    /// node has not confirmed.
    package func lags(of nodes: [NodeID]) -> [NodeID: UInt64] {
        state.withLock { state in
            Dictionary(uniqueKeysWithValues: nodes.map { ($0, state.exchange.lag(of: $0)) })
        }
    }

    /// Returns the status of all voters, all connected members and this node, by id.
    package func voterTable(at now: Instant) -> [FenceCoordinator.MemberStatus] {
        state.withLock { $0.exchange.memberStatuses(at: now) }
    }
}

/// The invalidations that accompany queries between nodes.
extension PurgeCoordinator {
    /// Returns the invalidations that `peer` must receive before a query.
    ///
    /// After sending them, the caller must call ``invalidationsSent(_:to:)``.
    ///
    /// - Parameters:
    ///   - peer: the recipient.
    ///   - pushed: the number of the last of this node's records that were sent on the connection
    ///     before.
    ///   - connection: the connection for the query.
    ///
    /// - Returns: the invalidations; `nil` if `connection` is not the one in use with the peer any
    ///   more, so that no query may be sent on it.
    func unsentInvalidations(to peer: NodeID, pushed: UInt64, on connection: PeerConnection)
        -> UnsentInvalidations?
    {
        state.withLock { state -> UnsentInvalidations? in
            guard state.connections[peer] === connection else { return nil }
            state.exchange.recordPushed(upTo: pushed, to: peer)
            return state.exchange.unsentInvalidations(to: peer)
        }
    }

    /// Records that the invalidations were sent to `peer`.
    func invalidationsSent(_ unsent: UnsentInvalidations, to peer: NodeID) {
        state.withLock { $0.exchange.invalidationsSent(unsent, to: peer) }
    }

    /// Applies the invalidations that came with a query, after the messages that the peer sent
    /// before.
    func queryReceived(_ question: PeerQuery, from peer: NodeID) {
        guard !question.positions.isEmpty || !question.invalidations.isEmpty else {
            // Messages that the peer sent ahead of the query.
            if inbox.withLock({ !$0.isEmpty }) { performStep { _, _, _ in } }
            return
        }
        let records = question.invalidations.compactMap { InvalidationRecord.read($0.span) }
        handle(
            .requestInvalidationsReceived(
                appliedPositions: question.positions, records: records, from: peer))
    }

    /// Returns true if this node lacks invalidations that `peer` has reported as applied.
    func isBehind(_ peer: NodeID) -> Bool {
        state.withLock { $0.exchange.isBehind(peer) }
    }

    /// Calls `completion` when this node has all invalidations that `peer` has reported, at once if
    /// it has them; never after ``stop()``.
    ///
    /// - Parameters:
    ///   - peer: the peer.
    ///   - limit: the time after which the wait may be dropped without a call of `completion`.
    ///   - completion: called on any thread.
    package func whenCaughtUp(
        with peer: NodeID, within limit: Interval, completion: @escaping @Sendable () -> Void
    ) {
        let isCaughtUp = state.withLock { state in
            guard state.exchange.isBehind(peer) else { return true }
            state.catchUpQueue.add(
                completion, for: peer, now: SystemClock.now(), within: limit)
            return false
        }
        if isCaughtUp { completion() }
    }
}

extension PurgeCoordinator {
    /// Waits until this node, which has announced that it leaves, is no longer a voter or cannot be
    /// removed, or the coordinator stops; then sends all queued messages.
    package func waitUntilLeft() async {
        await wait { $0.exchange.isLeaveComplete }
        outbox.finish()
    }

    /// Returns when the node is a voter and its fence is open, or when the coordinator stops.
    package func waitUntilCurrent() async {
        await wait { [fenceStatus] in
            $0.exchange.isVoter && fenceStatus.isOpen(at: SystemClock.now())
        }
    }

    /// Returns after the step that fulfils the condition, or when the coordinator stops.
    func wait(until isOver: @escaping Condition) async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            let isOverNow = state.withLock { state in
                if state.isStopped || isOver(state) { return true }
                state.stepWaiters.append((isOver, { done.resume() }))
                return false
            }
            if isOverNow { done.resume() }
        }
    }

    /// Applies a change of the members and connections.
    ///
    /// All in one step: no query is sent on a connection before the log knows that all
    /// invalidations must be sent again there.
    func membershipChanged(_ view: MemberView) {
        performStep { state, now, effects in
            let gone = state.connections.keys.filter { view.connections[$0] == nil }.sorted()
            let new = view.connections.filter { state.connections[$0.key] !== $0.value }
                .sorted { $0.key < $1.key }
            state.connections = view.connections
            let members = view.records.dropFirst().map {
                ReplicationMember($0.member.id, $0.member.process, .init($0.state))
            }
            let events =
                gone.map { ReplicationEvent.disconnected($0) } + [.membersChanged(members)]
                + new.map { .connected($0.key, on: $0.value.id) }
            for event in events {
                state.exchange.handle(event, now: now, using: &state.dice, effects: &effects)
            }
        }
    }
}

/// The log lines about the fence.
extension PurgeCoordinator {
    /// Logs that this node is fenced, with the silent voters and the remedies, or that it is no
    /// longer fenced; nothing without a voter set.
    ///
    /// Called periodically by one loop of a node that is in a cluster; ``FenceLogLimiter`` limits
    /// the number of lines.
    package func logFenceState(now: Instant) {
        let line = fenceReport.withLock {
            $0.nextEvent(closedFor: fenceStatus.closedDuration(at: now), now: now)
        }
        // A node that has found no cluster logs that elsewhere.
        guard let line, hasVoters else { return }
        line.log(
            to: logger, voters: voterTable(at: now).filter(\.isVoter),
            silentFor: fenceStatus.interval)
    }
}

/// The queries of peers that this node lags behind, in the order of arrival.
package struct CatchUpQueue {
    private struct Waiter {
        let requester: NodeID
        /// The time by which the query got another reply.
        let deadline: Instant
        let completion: @Sendable () -> Void
    }

    private var waiters: [Waiter] = []

    /// Creates an empty queue.
    package init() {}

    /// True if no query waits.
    package var isEmpty: Bool { waiters.isEmpty }

    /// Adds a query of `requester`, and drops the oldest ones if their time has passed.
    ///
    /// - Parameters:
    ///   - completion: called by the owner of the queue once ``takeReady(isBehind:)`` returns it.
    ///   - requester: the peer that this node lags behind.
    ///   - now: the present time.
    ///   - limit: the time after which the query may be dropped.
    package mutating func add(
        _ completion: @escaping @Sendable () -> Void, for requester: NodeID, now: Instant,
        within limit: Interval
    ) {
        waiters.removeFirst(waiters.prefix { $0.deadline <= now }.count)
        waiters.append(
            Waiter(requester: requester, deadline: now + limit, completion: completion))
    }

    /// Removes and returns the completions of all queries whose peers this node no longer lags
    /// behind.
    package mutating func takeReady(isBehind: (NodeID) -> Bool) -> [@Sendable () -> Void] {
        let ready = waiters.filter { !isBehind($0.requester) }
        waiters.removeAll { !isBehind($0.requester) }
        return ready.map(\.completion)
    }
}
