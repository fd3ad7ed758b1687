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
    var fetches = SortedTable<UInt64, SimulatedFetch>()
    /// The fetch that a request may join, by key.
    var joinableFetches: [UInt64?]
    var pausedUntil = Instant.zero
    var view: MemberView
    /// True once the node has been connected with another since its start.
    var hasTable = false
    /// The search for the cluster since the start.
    var discovery: ClusterDiscovery?
    /// The rule under which it may form a cluster, as last reported.
    var formationRule: ClusterFormation.Rule?
    /// True if the node accepts clients.
    var isServing = false
    /// The shutdown step and when it began; `nil` while the node is not leaving.
    var shutdown: (step: ShutdownStep, since: Instant)?
    /// The end of a period in which the node has another secret than the others.
    var wrongSecretUntil = Instant.zero
    /// An earlier copy of the directory.
    var copy: SimulatedStorage?
    /// The epoch of the copy that the directory is, until a node has detected it.
    var undetectedCopyEpoch: UInt64?
    /// The epoch and the process in which each node was seen last.
    var epochs: [NodeID: (epoch: UInt64, process: ProcessID)] = [:]
    /// The end of the offers that follow a change of owners.
    var offersDue = Instant.zero
    /// The first response to its rounds by each node's run: when, from which node, in which run.
    var roundContacts: [(at: Instant, by: Int, run: Int)] = []

    /// Creates a node that was never started.
    init(_ replica: SimulatedReplica, keys: [SimulatedKey], nodes count: Int) {
        index = replica.index
        self.replica = replica
        cache = SimulatedCache(replica.storage, keys: keys)
        joinableFetches = Array(repeating: nil, count: keys.count)
        view = MemberView(of: replica.index, nodes: count)
    }

    var isUp: Bool { replica.replication != nil }
    var process: ProcessID { replica.process }
    /// The voter set that the node follows, if any.
    var voterSet: VoterSet? { replica.replication?.voterConfiguration?.set }
    /// True while the node can still learn that its directory is an older copy.
    var isJoining: Bool { !isServing || !hasTable }

    /// Returns the time on the node's clock.
    func clock(at now: Instant) -> Instant { replica.clock.reading(at: now) }

    /// Returns true if the node accepts client requests.
    func acceptsClients(_ mutation: InvalidationMutation?) -> Bool {
        shutdown == nil ? isServing : mutation == .leaveBeforeRequestsFinish
    }

    // MARK: Starting

    /// Starts a process from the node's storage; nothing of an earlier one is left.
    mutating func start(_ world: inout SimulatedWorld) {
        let fresh = SimulatedCacheNode(replica, keys: world.keys, nodes: world.members.count)
        (cache, joinableFetches, view) = (fresh.cache, fresh.joinableFetches, fresh.view)
        fetches.removeAll()
        pausedUntil = .zero
        shutdown = nil
        epochs = [:]
        roundContacts = []
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
        run(&world) { exchange, now, dice, effects in
            do throws(FenceCoordinator.RemovalRefusal) {
                try exchange.forget(members, now: now, using: &dice, effects: &effects)
                isBegun = true
            } catch {
                isBegun = false
            }
        }
        return isBegun
    }

    /// Issues a purge and returns its number in the oracle; `nil` if it was refused.
    mutating func issue(_ invalidation: Invalidation, _ world: inout SimulatedWorld) -> Int? {
        guard let purge = invalidation.purge else { return nil }
        var issued: RecordID?
        run(&world) { exchange, now, dice, effects in
            let issuance = try? exchange.issue(
                invalidation, now: now, using: &dice, effects: &effects)
            if case .issued(let name) = issuance { issued = name }
        }
        guard let issued, let number = world.purgeIssued(purge, as: issued, by: index) else {
            return nil
        }
        recordApplied(number, &world)
        return number
    }

    /// Records that the node has applied a purge, by its number in the oracle.
    private mutating func recordApplied(_ purge: Int, _ world: inout SimulatedWorld) {
        replica.applied.insert(purge)
        coverTransfers(of: world.oracle.purges[purge].covers, &world)
        world.trace(6, index)
    }

    /// Counts the transfers during which a purge that covers these keys was applied.
    private func coverTransfers(of covers: [Bool], _ world: inout SimulatedWorld) {
        for fetch in fetches.values where covers[fetch.key] {
            if fetch.origin != nil {
                world.cover(fetch.storedEntry == nil ? .duringFetch : .duringRevalidation)
            }
            for question in fetch.requests.values {
                switch question.path {
                case .get:
                    world.cover(.duringGet)
                    if view.owners(of: fetch.key, world).first != index {
                        world.cover(.duringHotCopy)
                    }
                case .probe: world.cover(.duringProbe)
                case .offer: world.cover(.duringOffer)
                case .drain: world.cover(.duringDrain)
                case .fetch, .revalidation: break
                }
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
