package import Ground

/// All decisions of a node about invalidations: its log, its fence and its voter set.
///
/// The caller delivers events, carries out the effects in order before it serves anything else, and
/// may query at any time. Everything that the fence counts as applied is among the effects of the
/// same event, ahead of the ``InvalidationEffect/publishWindow(_:)`` that it may open. Not
/// thread-safe.
///
/// Invariants: while ``window`` is current, everything that a majority of the voters named in
/// responses to requests of the last fence duration was emitted as applied. The fence receives a
/// consensus record only when it is synced at its writer.
package struct InvalidationReplication: Sendable {
    /// The settings of the log and the fence.
    package struct Settings: Hashable, Sendable {
        /// The settings of the log.
        package var log = InvalidationLog.Settings()
        /// The settings of the fence.
        package var fence = Fence.Settings()
        /// The maximum size of the records in one repair response in bytes; at least one record is
        /// sent.
        package var repairBytesMax = 48 << 10

        /// Creates the default settings.
        package init() {}
    }

    /// The state that a node starts with.
    package struct InitialState: Sendable {
        /// The node's id.
        package var node: NodeID
        /// The process id, drawn at random at its start.
        package var process: ProcessID
        /// The settings.
        package var settings = Settings()
        /// The log as read from disk.
        package var persistedLog = PersistedLog()
        /// The last state that ``LogMetadataUpdate/consensusState(_:)`` put on disk, or `nil`.
        package var persistentState: VoterSetConsensus.PersistentState?
        /// True only if the log is neither damaged nor lost and the directory holds nothing that
        /// was ever served under a voter set.
        package var mayBootstrap = false
        /// A random number for the first round.
        package var firstRound: UInt64

        /// Creates an initial state with default settings and an empty log.
        package init(node: NodeID, process: ProcessID, firstRound: UInt64) {
            self.node = node
            self.process = process
            self.firstRound = firstRound
        }
    }

    let settings: Settings
    var log: InvalidationLog
    var fenceCoordinator: FenceCoordinator
    /// The consensus whose persistent state the log was last given to write.
    var persistedConsensus: VoterSetConsensus
    /// The conflict that was reported last.
    var reportedConflict: VoterSetConsensus.Conflict?
    /// The ``VoterSetLineage/recovery`` of the lineage that was followed last.
    var followedRecovery: UInt64?
    /// The window of the last ``InvalidationEffect/publishWindow(_:)``.
    var publishedWindow: FenceWindow
    var formation = ClusterFormation()

    /// Creates the state of a node that starts at `now`; ``started(now:using:effects:)`` must
    /// follow.
    package init(_ start: InitialState, now: Instant) {
        settings = start.settings
        var logSettings = settings.log
        logSettings.fenceDuration = settings.fence.duration ?? logSettings.fenceDuration
        logSettings.removeAfter = settings.fence.removeAfter
        log = InvalidationLog(
            node: start.node, process: start.process, settings: logSettings,
            persisted: start.persistedLog,
            now: now)
        let records = start.persistedLog.records.compactMap(\.consensusRecord)
        fenceCoordinator = FenceCoordinator(
            own: start.node, persistentState: start.persistentState, replaying: records,
            mayBootstrap: start.mayBootstrap,
            settings: settings.fence, firstRound: start.firstRound, now: now)
        persistedConsensus = fenceCoordinator.consensus
        followedRecovery = persistedConsensus.configuration?.set.lineage.recovery
        publishedWindow = fenceCoordinator.window
    }

    /// Processes the state read from disk; must be called once, before any event.
    package mutating func started(
        now: Instant, using dice: inout SplitMix64, effects: inout [InvalidationEffect]
    ) {
        let retired = log.streams.retired.positions
        let applied = log.streams.live.map(\.contiguousPosition)
        notifyFence(.positionsApplied(applied + retired), now, &dice)
        notifyFence(.positionsSynced(log.syncedPositions), now, &dice)
        for position in retired { notifyFence(.streamRetired(position), now, &dice) }
        if fenceCoordinator.consensus.hasJoined {
            log.applied.writes.add(.consensusState(fenceCoordinator.consensus.persistentState))
        }
        runToCompletion(now, &dice, &effects)
        publishedWindow = window
        effects.append(.publishWindow(window))
    }

    // MARK: Events

    /// Processes an event at `now` and appends its effects.
    package mutating func handle(
        _ event: ReplicationEvent, now: Instant, using dice: inout SplitMix64,
        effects: inout [InvalidationEffect]
    ) {
        handle([event], now: now, using: &dice, effects: &effects)
    }

    /// Processes several events in order and appends their effects, then the replies to peers.
    package mutating func handle(
        _ events: [ReplicationEvent], now: Instant, using dice: inout SplitMix64,
        effects: inout [InvalidationEffect]
    ) {
        let responses = events.compactMap { process($0, now, &dice, &effects) }
        runToCompletion(now, &dice, &effects)
        for (response, node) in responses { effects.append(.send(response, to: [node])) }
    }

    /// Processes one event and returns a message to send, with its receiver.
    private mutating func process(
        _ event: ReplicationEvent, _ now: Instant, _ dice: inout SplitMix64,
        _ effects: inout [InvalidationEffect]
    ) -> (InvalidationMessage, NodeID)? {
        switch event {
        case .ticked:
            log.ticked(now: now, effects: &effects)
            notifyFence(.ticked, now, &dice)
        case .messageReceived(let message, let node):
            return process(message, node, now, &dice, &effects).map { ($0, node) }
        case .requestInvalidationsReceived(let knowledge, let records, let node):
            log.recordsReceived(records, from: node, now: now, effects: &effects)
            log.appliedPositionsReceived(knowledge, from: node, now: now, effects: &effects)
        case .connected(let node, let connection):
            log.connected(node, on: connection, now: now, effects: &effects)
            notifyFence(.reachableMembersChanged(log.peers.connected), now, &dice)
            fenceCoordinator.queryMember(node, now: now)
        case .disconnected(let node):
            log.disconnected(node, now: now, effects: &effects)
            notifyFence(.reachableMembersChanged(log.peers.connected), now, &dice)
        case .membersChanged(let members):
            log.membersChanged(members, now: now, effects: &effects)
            notifyFence(
                .membersLeft(members.filter { $0.presence == .left }.map(\.node)), now, &dice)
        case .synced: log.writeSynced(now: now, effects: &effects)
        case .writeFailed: log.writeFailed(now: now)
        case .diskFull(let positions): log.dropForSpace(positions, now: now, effects: &effects)
        case .purgedLocally(let purge): log.applyLocally(purge, effects: &effects)
        case .formationRuleChanged(let rule): formation.rule = rule
        case .leaveRequested: notifyFence(.leaveRequested, now, &dice)
        case .recoveryRequested: notifyFence(.recoveryRequested, now, &dice)
        }
        return nil
    }

    /// Processes a peer's message and returns the reply, if there is one.
    private mutating func process(
        _ message: InvalidationMessage, _ node: NodeID, _ now: Instant, _ dice: inout SplitMix64,
        _ effects: inout [InvalidationEffect]
    ) -> InvalidationMessage? {
        switch message {
        case .push(let records):
            log.recordsReceived(records, from: node, now: now, effects: &effects)
        case .confirmation(let positions, let members, let view):
            // First the voter set: a member that confirms after it voted on a later set reports
            // that set.
            notifyFence(
                .responseReceived(FenceResponse(round: nil, synced: positions, view: view), node),
                now, &dice)
            updateLogVoters(now, &effects)
            log.confirmationReceived(
                positions, members: members, by: node, now: now, effects: &effects)
        case .appliedPositions(let positions):
            log.appliedPositionsReceived(positions, from: node, now: now, effects: &effects)
        case .repairRequest(let ranges):
            let bytesMax = settings.repairBytesMax
            return .repairResponse(log.repairResponse(to: ranges, of: node, bytesMax: bytesMax))
        case .repairResponse(let response):
            log.repairResponseReceived(response, from: node, now: now, effects: &effects)
        case .roundRequest(let round, let requesterDigest):
            let catchUp = log.catchUpTarget(of: node)
            let view = view(at: now)
            if ReplicationDigest.of(catchUp, view.configuration) == requesterDigest {
                return .roundUnchanged(round: round, digest: requesterDigest, view: view)
            }
            let response = FenceResponse(round: round, synced: catchUp.positions, view: view)
            return .roundResponse(response, retired: catchUp.retired)
        case .roundResponse(let response, let retired):
            let catchUp = CatchUpTarget(positions: response.synced, retired: retired)
            roundResponseReceived(response, catchUp, node, now, &dice, &effects)
        case .roundUnchanged(let round, let commonDigest, var view):
            // If this node has changed since it sent the request, its former state is unknown.
            guard commonDigest == digest else { break }
            view.configuration = voterConfiguration
            let catchUp = log.catchUp
            let response = FenceResponse(round: round, synced: catchUp.positions, view: view)
            roundResponseReceived(response, catchUp, node, now, &dice, &effects)
        }
        return nil
    }

    /// The digest of the synced positions and the voter set; see ``ReplicationDigest``.
    var digest: UInt64 { ReplicationDigest.of(log.catchUp, voterConfiguration) }

    /// Applies a round response, or its equivalent for
    /// ``InvalidationMessage/roundUnchanged(round:digest:view:)``: first to the log, then to the
    /// fence.
    private mutating func roundResponseReceived(
        _ response: FenceResponse, _ catchUp: CatchUpTarget, _ node: NodeID, _ now: Instant,
        _ dice: inout SplitMix64, _ effects: inout [InvalidationEffect]
    ) {
        log.applyCatchUpTarget(catchUp, from: node, now: now, effects: &effects)
        forwardLogOutput(now, &dice)
        var response = response
        response.synced += catchUp.retired
        notifyFence(.responseReceived(response, node), now, &dice)
    }

    /// Assigns `invalidation` the next number of this node, unless its id is known.
    ///
    /// - Returns: The outcome; with ``IssueOutcome/busy`` nothing has happened.
    /// - Throws: ``InvalidationFault``, for a consensus record ``InvalidationFault/invalidID``;
    ///   nothing has happened.
    package mutating func issue(
        _ invalidation: Invalidation, now: Instant, using dice: inout SplitMix64,
        effects: inout [InvalidationEffect]
    ) throws(InvalidationFault) -> IssueOutcome {
        if case .consensus = invalidation.action { throw .invalidID }
        let issuance = try log.issue(invalidation, now: now, effects: &effects)
        runToCompletion(now, &dice, &effects)
        return issuance
    }

    /// Begins to remove members from the voter set by order of the operator.
    ///
    /// - Throws: ``FenceCoordinator/RemovalRefusal``; nothing was begun.
    package mutating func forget(
        _ members: [NodeID], now: Instant, using dice: inout SplitMix64,
        effects: inout [InvalidationEffect]
    ) throws(FenceCoordinator.RemovalRefusal) {
        try fenceCoordinator.removeVoters(members, now: now, using: &dice)
        runToCompletion(now, &dice, &effects)
    }

    /// Returns the invalidations to send with the next query to `node`; `nil` without a connection.
    package func unsentInvalidations(to node: NodeID) -> UnsentInvalidations? {
        log.unsentInvalidations(to: node)
    }

    /// Records that `unsent` and its preceding message were sent to `node`; not to be called if
    /// refused.
    package mutating func invalidationsSent(_ unsent: UnsentInvalidations, to node: NodeID) {
        log.invalidationsSent(unsent, to: node)
    }

    /// Records that this node's own records up to `number` are queued to `node`, ahead of later
    /// queries.
    ///
    /// Must not be called for records that the connection refused.
    package mutating func recordPushed(upTo number: UInt64, to node: NodeID) {
        log.recordPushed(upTo: number, to: node)
    }
}

/// Queries that may be made at any time.
extension InvalidationReplication {
    /// This node.
    package var node: NodeID { fenceCoordinator.own }
    /// This process, which names this node's stream.
    package var process: ProcessID { log.process }

    /// When ``ReplicationEvent/ticked`` is due; changes with every event.
    package var nextTick: Instant { min(log.nextTick, fenceCoordinator.nextTick) }

    /// The time until which this node may serve fresh entries.
    ///
    /// Closed while the voter set is smaller than ``ClusterFormation/isLargeEnough(_:)`` requires.
    package var window: FenceWindow {
        guard settings.fence.duration != nil, let set = voterConfiguration?.set,
            !formation.isLargeEnough(set)
        else {
            return fenceCoordinator.window
        }
        return FenceWindow(
            closedAt: min(publishedWindow.closedAt, fenceCoordinator.window.closedAt))
    }

    /// The count of invalidations applied since the start, part of a request's invalidation
    /// version.
    package var appliedCount: UInt64 { log.appliedCount }
    /// The size of invalidations that are not synced yet, in bytes.
    package var unsyncedBytes: Int { log.unsyncedBytes }

    /// The positions synced here without a gap, for gossip.
    package var syncedPositions: [StreamPosition] { log.syncedPositions }

    /// Returns true if this node lacks invalidations that `node` has applied; queries are then
    /// answered `behind`.
    package func isBehind(_ node: NodeID) -> Bool { log.lags(behind: node) }

    /// Returns the progress of the record; `nil` if it is not held.
    package func receipt(of name: RecordID) -> Receipt? {
        var receipt = log.receipt(of: name)
        if settings.fence.duration == nil { receipt?.boundedAt = nil }
        receipt?.isMembershipComplete = isMembershipComplete
        return receipt
    }

    /// True if this node's receipts include every node that can serve.
    package var isMembershipComplete: Bool { !fenceCoordinator.mayHaveUnknownNodes }

    /// Returns the record that is held with this client id, or `nil`.
    package func record(withClientID id: [UInt8]) -> RecordID? { log.record(withClientID: id) }

    /// Returns the purges that this node received last, at most `countMax`, newest first.
    package func lastPurges(_ countMax: Int) -> [RecordID] { log.lastPurges(countMax) }

    /// The number of this node's purges that some voter has not confirmed.
    package var pendingReceiptCount: UInt64 { log.pendingReceiptCount }

    /// Returns how many invalidations are synced here that `node` has not confirmed.
    package func lag(of node: NodeID) -> UInt64 { log.lag(of: node) }

    /// Returns the record, or `nil` if it is not held.
    package func record(_ name: RecordID) -> InvalidationRecord? { log.record(name) }

    /// The voter set that this node follows, if any.
    package var voterConfiguration: VoterConfiguration? { fenceCoordinator.consensus.configuration }
    /// True if this node is a member of a settled set.
    package var isVoter: Bool {
        fenceCoordinator.consensus.isVoter
            && fenceCoordinator.consensus.configuration?.isSettled == true
    }
    /// The conflict that only the operator can resolve, if any.
    package var conflict: VoterSetConsensus.Conflict? { fenceCoordinator.consensus.conflict }
    /// The state of the voter set consensus that must survive a restart, as of now.
    package var persistentState: VoterSetConsensus.PersistentState {
        fenceCoordinator.consensus.persistentState
    }

    /// Returns the status of all voters, all connected members and this node, by id.
    package func memberStatuses(at now: Instant) -> [FenceCoordinator.MemberStatus] {
        fenceCoordinator.memberStatuses(at: now)
    }

    /// True if this node has left, or waiting for that is pointless: it may stop.
    package var isLeaveComplete: Bool { fenceCoordinator.isLeaveComplete }

    /// The number of records that the log holds.
    package var heldCount: Int { log.heldCount }
}

/// A 64-bit digest of a node's synced positions and voter set.
///
/// Two nodes with equal digests need not exchange them. Nodes of a cluster trust each other, so
/// deliberate collisions are no threat. By chance one in 2^64 comparisons takes different states
/// for equal.
enum ReplicationDigest {
    private static let seed: UInt64 = 0x6E75_7468_6174_6368

    /// Returns the digest of `catchUp` and `configuration`.
    static func of(_ catchUp: CatchUpTarget, _ configuration: VoterConfiguration?) -> UInt64 {
        var hash = XXH64(seed: seed)
        for positions in [catchUp.positions, catchUp.retired] {
            var writer = StructureWriter()
            writer.put(UInt64(positions.count))
            for position in positions { position.put(into: &writer) }
            hash.update(writer.bytes.span)
        }
        // A configuration that is too long to encode cannot be sent either: only its presence
        // counts.
        if let configuration {
            let bytes = (try? configuration.bytes()) ?? [0]
            hash.update(bytes.span)
        }
        return hash.finish()
    }
}
