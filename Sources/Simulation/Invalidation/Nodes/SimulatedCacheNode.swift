import Cluster
import Ground
import Serving
import Tiers

/// A simulated node: its replication and cache, its requests in progress, and its life cycle.
struct SimulatedCacheNode: Sendable {
    /// The index of the node.
    let index: Int
    var replica: SimulatedReplica
    var cache: SimulatedCache
    var fetches: SimulatedFetchTable
    var pausedUntil = Instant.zero
    var view: MemberView
    /// The search for the cluster since the start.
    var startup = SimulatedStartup()
    /// The shutdown step and when it began; `nil` while the node is not leaving.
    var shutdown: (step: ShutdownStep, since: Instant)?
    /// An earlier copy of the directory.
    var copy: SimulatedStorage?
    /// The epoch of the copy that the directory is, until a node has detected it.
    var undetectedCopyEpoch: UInt64?
    /// The epoch and the process in which each node was seen last.
    var epochs: [NodeID: (epoch: UInt64, process: ProcessID)] = [:]
    /// The end of the offers that follow a change of owners.
    var offersDue = Instant.zero
    /// The first receipt of its rounds by each voter's run: when, at which node, in which run.
    var roundContacts: [(at: Instant, by: Int, run: Int)] = []

    /// Creates a node that was never started.
    init(_ replica: SimulatedReplica, keys: [SimulatedKey], nodes count: Int) {
        index = replica.index
        self.replica = replica
        cache = SimulatedCache(replica.storage, keys: keys)
        fetches = SimulatedFetchTable(keys: keys.count)
        view = MemberView(of: replica.index, nodes: count)
    }

    var isUp: Bool { replica.replication != nil }
    var process: ProcessID { replica.process }
    /// The voter set that the node follows, if any.
    var voterSet: VoterSet? { replica.replication?.voterConfiguration?.set }

    /// Returns the time on the node's clock.
    func clock(at now: Instant) -> Instant { replica.clock.reading(at: now) }

    /// Returns true if the node accepts client requests.
    func acceptsClients(_ mutation: InvalidationMutation?) -> Bool {
        shutdown == nil ? startup.isServing : mutation == .leaveBeforeRequestsFinish
    }

    // MARK: Starting

    /// Starts a process from the node's storage; nothing of an earlier one is left.
    mutating func start(_ world: inout SimulatedWorld) {
        var fresh = SimulatedCacheNode(replica, keys: world.keys, nodes: world.members.count)
        (fresh.copy, fresh.undetectedCopyEpoch) = (copy, undetectedCopyEpoch)
        fresh.offersDue = offersDue
        self = fresh
        replica.start(&world)
        run(&world) { $0.started(now: $1, using: &$2, effects: &$3) }
        replica.checkClaims(&world)
    }

    /// Schedules the scan of the disk and the first housekeeping.
    mutating func scheduleHousekeeping(_ world: inout SimulatedWorld) {
        world.schedule(.scanned(index, run: replica.run), after: world.milliseconds(2...80))
        world.schedule(
            .housekeeping(index, run: replica.run), after: world.milliseconds(300...1_300))
    }

    // MARK: Replication

    /// Delivers an event to the replication.
    mutating func deliver(_ event: ReplicationEvent, _ world: inout SimulatedWorld) {
        run(&world) { $0.handle(event, now: $1, using: &$2, effects: &$3) }
    }

    /// Performs a call of the replication and applies the invalidations that result.
    mutating func run(_ world: inout SimulatedWorld, _ call: SimulatedReplica.Call) {
        for applied in replica.run(&world, call) {
            if let purge = applied.purge { recordApplied(purge, &world) }
            cache.apply(applied.marks, isFloor: applied.isFloor)
        }
    }

    /// Delivers the tick that is due.
    mutating func tick(_ world: inout SimulatedWorld) {
        guard replica.takeTick(at: world.now) else { return }
        deliver(.ticked, &world)
        guard replica.updateFaults(at: world.now), let members = voterSet?.members else { return }
        // The survivors of a split remove the other side, which does the same.
        forget(members.filter { !world.isConnected($0, by: index) }, &world)
    }

    /// Completes the write of the pending batch.
    mutating func synced(_ world: inout SimulatedWorld) {
        guard replica.persistBatch(&world) else { return }
        deliver(.synced, &world)
        replica.checkClaims(&world)
        guard world.scenario.mutation == .markDroppedAtConfirmation else { return }
        replica.storage.marks = []
        cache.removeMarks()
    }

    /// Removes members from the voters; returns false if that is refused.
    @discardableResult
    mutating func forget(_ members: [NodeID], _ world: inout SimulatedWorld) -> Bool {
        var isBegun = false
        run(&world) {
            isBegun = (try? $0.forget(members, now: $1, using: &$2, effects: &$3)) != nil
        }
        return isBegun
    }

    /// Issues a purge and returns its number in the oracle; `nil` if it was refused.
    mutating func issue(_ invalidation: Invalidation, _ world: inout SimulatedWorld) -> Int? {
        guard let purge = invalidation.purge else { return nil }
        var issued: RecordID?
        run(&world) { issued = $0.issueRecord(invalidation, now: $1, using: &$2, effects: &$3) }
        guard let issued, let number = world.purgeIssued(purge, as: issued, by: index) else {
            return nil
        }
        recordApplied(number, &world)
        return number
    }

    /// Records that the node has applied a purge, by its number in the oracle, and counts the
    /// transfers of objects that the purge covers.
    private mutating func recordApplied(_ purge: Int, _ world: inout SimulatedWorld) {
        replica.applied.insert(purge)
        world.trace(6, index)
        let covers = world.oracle.purges[purge].covers
        for fetch in fetches.values where covers[fetch.key] {
            for request in fetch.outstandingRequests {
                world.cover(request.path.goal)
                guard request.path == .get else { continue }
                if view.owners(of: fetch.key, world).first != index { world.cover(.duringHotCopy) }
            }
        }
        for key in covers.indices where covers[key] {
            if fetches.values.contains(where: { $0.key == key && $0.lookup.step == .disk }) {
                world.cover(.duringPromotion)
            }
            if cache.reinserting[key] != nil { world.cover(.duringReinsertion) }
            let isKept = replica.storage.entries.contains { $0.key == key }
            if !cache.isScanned, isKept { world.cover(.duringRecovery) }
        }
    }

    // MARK: Members

    /// Updates the view of the members, and reports all of them if it has changed.
    mutating func updateView(_ world: inout SimulatedWorld) {
        guard let (members, hasNew) = view.update(world) else { return }
        deliver(.membersChanged(members), &world)
        if hasNew { offersDue = world.now + .seconds(2) }
    }
}
