package import Ground

/// All that a node decides about invalidations: its log, its fence and the counted members, as one
/// thing with one order of events and effects.
///
/// The shell tells what happened, does what comes out in order before it serves anything else, and
/// asks. What the fence is told to be applied is in the effects of the same event, ahead of the
/// ``InvalidationEffect/window(_:)`` that may open for it.
///
/// Invariants: while ``window`` is current everything that a majority of the counted members named
/// in answer to questions within the last fence was given out as applied; the fence is told of a
/// record of the count only when it is synced where it was written.
package struct InvalidationReplication: Sendable {
    package struct Settings: Hashable, Sendable {
        package var log = InvalidationLog.Settings()
        package var fence = Fence.Settings()
        /// The most bytes of records in one answer to who asks for some; at least one is given.
        package var repairBytesMax = 48 << 10

        package init() {}
    }

    /// What a node starts with.
    package struct InitialState: Sendable {
        package var node: NodeID
        /// Drawn for this run.
        package var process: ProcessID
        package var settings = Settings()
        /// What the disk had.
        package var persistedLog = PersistedLog()
        /// What ``LogMetadataUpdate/memory(_:)`` had last put on disk.
        package var persistentState: VoterSetConsensus.PersistentState?
        /// The log is neither damaged nor lost, and the directory holds nothing that was ever
        /// served under a count.
        package var mayBootstrap = false
        /// Drawn by dice.
        package var firstRound: UInt64

        package init(node: NodeID, process: ProcessID, firstRound: UInt64) {
            self.node = node
            self.process = process
            self.firstRound = firstRound
        }
    }

    let settings: Settings
    var log: InvalidationLog
    var fenceCoordinator: FenceCoordinator
    var persistedConsensus: VoterSetConsensus
    /// The contradiction that was told last.
    var reportedConflict: VoterSetConsensus.Conflict?
    /// ``VoterSetLineage/recovery`` of the line that was followed last.
    var followedRecovery: UInt64?
    var publishedWindow: FenceWindow
    var formation = ClusterFormation()

    /// A node that starts at `now`.
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

    /// To be called once, before anything else: what follows from what was kept.
    package mutating func started(
        now: Instant, using dice: inout SplitMix64, effects: inout [InvalidationEffect]
    ) {
        let retired = log.retired.positions
        let applied = log.streams.streams.compactMap { log.appliedPosition(of: $0.process) }
        notifyFence(.positionsApplied(applied + retired), now, &dice)
        notifyFence(.positionsSynced(log.syncedPositions), now, &dice)
        for position in retired { notifyFence(.streamRetired(position), now, &dice) }
        if fenceCoordinator.consensus.hasJoined {
            log.writes.add(.consensusState(fenceCoordinator.consensus.persistentState))
        }
        runToCompletion(now, &dice, &effects)
        publishedWindow = window
        effects.append(.publishWindow(window))
    }

    // MARK: Events

    /// Takes in what happened at `now` and appends what is to be done.
    package mutating func handle(
        _ event: ReplicationEvent, now: Instant, using dice: inout SplitMix64,
        effects: inout [InvalidationEffect]
    ) {
        handle([event], now: now, using: &dice, effects: &effects)
    }

    /// The same of several, in their order.
    package mutating func handle(
        _ events: [ReplicationEvent], now: Instant, using dice: inout SplitMix64,
        effects: inout [InvalidationEffect]
    ) {
        let responses = events.compactMap { process($0, now, &dice, &effects) }
        runToCompletion(now, &dice, &effects)
        for (response, node) in responses { effects.append(.send(response, to: [node])) }
    }

    /// Takes in an event; gives what is to be answered, and to whom.
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
            notifyFence(.reachableMembersChanged(log.peers.keys), now, &dice)
            fenceCoordinator.queryMember(node, now: now)
        case .disconnected(let node):
            log.disconnected(node, now: now, effects: &effects)
            notifyFence(.reachableMembersChanged(log.peers.keys), now, &dice)
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

    /// Takes what a peer says; what is to be answered is of after that.
    private mutating func process(
        _ message: InvalidationMessage, _ node: NodeID, _ now: Instant, _ dice: inout SplitMix64,
        _ effects: inout [InvalidationEffect]
    ) -> InvalidationMessage? {
        switch message {
        case .push(let records):
            log.recordsReceived(records, from: node, now: now, effects: &effects)
        case .confirmation(let positions, let members, let view):
            // First the count: who confirms after voting on a later set says so.
            notifyFence(
                .responseReceived(FenceResponse(round: nil, holds: positions, view: view), node),
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
        case .roundRequest(let round, let theirs):
            let catchUp = log.catchUpTarget(of: node)
            let view = view(at: now)
            if ReplicationDigest.of(catchUp, view.configuration) == theirs {
                return .roundUnchanged(round: round, digest: theirs, view: view)
            }
            let response = FenceResponse(round: round, holds: catchUp.positions, view: view)
            return .roundResponse(response, retired: catchUp.retired)
        case .roundResponse(let response, let retired):
            let catchUp = CatchUpTarget(positions: response.synced, retired: retired)
            roundResponseReceived(response, catchUp, node, now, &dice, &effects)
        case .roundUnchanged(let round, let theirs, var view):
            // Of what this node had when it asked, and has no more, it cannot say what it was.
            guard theirs == digest else { break }
            view.configuration = voterConfiguration
            let catchUp = log.catchUp
            let response = FenceResponse(round: round, holds: catchUp.positions, view: view)
            roundResponseReceived(response, catchUp, node, now, &dice, &effects)
        }
        return nil
    }

    /// What this node has synced and which count it follows; see ``ReplicationDigest``.
    var digest: UInt64 { ReplicationDigest.of(log.catchUp, voterConfiguration) }

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

    /// Gives `invalidation` the next number of this node, unless its id is known.
    ///
    /// - Throws: ``InvalidationFault``; nothing has happened.
    package mutating func issue(
        _ invalidation: Invalidation, now: Instant, using dice: inout SplitMix64,
        effects: inout [InvalidationEffect]
    ) throws(InvalidationFault) -> IssueOutcome {
        if case .consensus = invalidation.action { throw .invalidID }
        let issuance = try log.issue(invalidation, now: now, effects: &effects)
        runToCompletion(now, &dice, &effects)
        return issuance
    }

    /// Begins to forget members by the operator's word.
    ///
    /// - Throws: ``FenceCoordinator/ForgetRefusal``; nothing was begun.
    package mutating func forget(
        _ members: [NodeID], now: Instant, using dice: inout SplitMix64,
        effects: inout [InvalidationEffect]
    ) throws(FenceCoordinator.ForgetRefusal) {
        try fenceCoordinator.forget(members, now: now, using: &dice)
        runToCompletion(now, &dice, &effects)
    }

    /// What has to go with the next question to `node`; nil if there is no connection with it.
    package func unsentInvalidations(to node: NodeID) -> UnsentInvalidations? {
        log.unsentInvalidations(to: node)
    }

    /// `untold`, with what goes ahead of it, was sent to `node`; not to be told if it was refused.
    package mutating func invalidationsSent(_ untold: UnsentInvalidations, to node: NodeID) {
        log.invalidationsSent(untold, to: node)
    }

    /// This node's own records up to `number` are on their way to `node`, ahead of whatever it is
    /// asked from now on; not to be told of what the connection has refused.
    package mutating func recordPushed(upTo number: UInt64, to node: NodeID) {
        log.recordPushed(upTo: number, to: node)
    }
}

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

/// What a node has synced and which count it follows, in 64 bits: two that have the same need not
/// tell it each other.
///
/// Nodes of one cluster trust each other, so that nobody looks for two states with one digest; by
/// chance one in 2^64 comparisons of different states takes them for the same.
enum ReplicationDigest {
    private static let seed: UInt64 = 0x6E75_7468_6174_6368

    static func of(_ catchUp: CatchUpTarget, _ standing: VoterConfiguration?) -> UInt64 {
        var hash = XXH64(seed: seed)
        for positions in [catchUp.positions, catchUp.retired] {
            var writer = StructureWriter()
            writer.put(UInt64(positions.count))
            for position in positions { position.put(into: &writer) }
            hash.update(writer.bytes.span)
        }
        // One that is too long to be written is too long to be told: all that is left of it is that
        // there is one.
        if let standing {
            let bytes = (try? standing.bytes()) ?? [0]
            hash.update(bytes.span)
        }
        return hash.finish()
    }
}
