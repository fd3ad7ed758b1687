import Cluster
import Ground
import Serving
import Tiers

/// A seeded simulation of whole nodes, built from the pure modules, with an origin, clients and
/// operators.
///
/// Every read is checked against the guarantees of the design (Design, "Simulation").
struct InvalidationSimulation: Sendable {
    var world: SimulatedWorld
    var nodes: [SimulatedCacheNode] = []
    var workload = SimulatedWorkload()
    var receipts = ReceiptAudit()

    /// The first broken guarantee; `nil` if none.
    var violation: String? { world.report.violation }
    var scenario: InvalidationScenario { world.scenario }
    var now: Instant { world.now }

    /// Creates a simulation at its beginning.
    init(_ plan: InvalidationScenario, keys site: SimulatedSite) {
        let set = plan.initialVoterSet(site.nodes)
        world = SimulatedWorld(plan, site, voterSets: set.map { [$0] } ?? [])
        for index in world.members.indices {
            let clock = SimulatedClock(from: world.now, using: &world.dice)
            var replica = SimulatedReplica(index, clock: clock, mutation: plan.mutation)
            if index < plan.nodes, let set {
                replica.storage.persistentState = VoterSetConsensus.PersistentState(
                    configuration: VoterConfiguration(set), joinCount: 1, records: [])
            }
            nodes.append(
                SimulatedCacheNode(replica, keys: site.keys, nodes: world.members.count))
        }
        world.scheduleBeginning()
    }

    // MARK: Time

    /// Runs until `instant`, or until a guarantee is broken.
    mutating func play(until instant: Instant) {
        while violation == nil, let event = world.takeNext(until: instant) { handle(event) }
        world.now = max(now, instant)
    }

    /// Delivers an event to a node's replication.
    mutating func deliver(_ index: Int, _ event: ReplicationEvent) {
        nodes[index].deliver(event, &world)
    }

    /// Handles an event; one for a node that is down or was restarted is dropped, and one for a
    /// paused node is deferred.
    private mutating func handle(_ event: SimulatedEvent) {
        if let (index, run) = event.owner {
            let node = nodes[index]
            guard node.isUp, run ?? node.replica.run == node.replica.run else { return }
            // A paused process handles it when it resumes.
            guard node.pausedUntil <= now else {
                return world.schedule(event, at: node.pausedUntil)
            }
        }
        switch event {
        case .arrive(let from, let to, let line, let message):
            let link = world.network.link(from, to)
            guard link.isOpen, link.number == line else { return }
            world.trace(1, to)
            if case .invalidation(.roundRequest) = message { recordRoundContact(from, by: to) }
            nodes[to].messageReceived(message, from: from, &world)
        case .tick(let index, _): nodes[index].tick(&world)
        case .sync(let index, _): nodes[index].synced(&world)
        case .originRequested(let index, let run, let fetch, let etag):
            originRequested(index, run, fetch, etag)
        case .originResponded(let index, _, let fetch, let reply):
            world.trace(2, index)
            nodes[index].originResponded(fetch, reply, &world)
        case .lookupDeadline(let index, _, let fetch):
            nodes[index].advance(fetch, &world) { $0.deadlineReached($1, effects: &$2) }
        case .promoted(let index, _, let fetch): nodes[index].promoted(fetch, &world)
        case .reinserted(let index, _, let key): nodes[index].reinserted(key, &world)
        case .scanned(let index, _): nodes[index].cache.scan(nodes[index].replica.storage)
        case .housekeeping(let index, _): nodes[index].runHousekeeping(&world)
        case .read(let index, let key):
            world.trace(3, index)
            if nodes[index].acceptsClients(scenario.mutation) {
                nodes[index].request(key, .client, &world)
            }
        case .client: workload.step(&world)
        case .purge(let key): purge(key)
        case .fault: injectFault()
        case .isolate: isolate()
        case .reconnect(let one, let other): connect(one, other)
        case .breakLink(let one, let other, let number):
            if world.network.link(one, other).number == number { disconnect(one, other) }
        case .start(let index): start(index)
        case .stop(let index, _): crash(index)
        case .seedsResolved(let index, _): seedsResolved(index)
        case .checkDiscovery(let index, _): checkDiscovery(index)
        case .advanceShutdown(let index, _): advanceShutdown(index)
        case .loseMajority: loseMajority()
        case .directoryLost(let index, _): loseDirectory(index)
        case .copyAndCutOff: copyAndCutOff()
        case .cutOff(let index): cutOff(from: index)
        case .putBack(let index): restoreCopy(index)
        case .runOperator: runOperator()
        case .updateMembership: updateMembership()
        case .checkReceipts:
            world.schedule(.checkReceipts, after: .milliseconds(50))
            receipts.check(nodes, &world)
        }
    }

    // MARK: Purges and the origin

    /// Purges the key at a random node, for the operator or the origin, if it is up and not paused.
    private mutating func purge(_ key: Int) {
        let index = Int.random(in: nodes.indices, using: &world.dice)
        guard nodes[index].isUp, nodes[index].pausedUntil <= now else { return }
        _ = issue(workload.purge(of: world.keys[key], &world), at: index)
    }

    /// Issues a purge at a node and returns its number in the oracle; `nil` if it was refused.
    mutating func issue(_ invalidation: Invalidation, at index: Int) -> Int? {
        let number = nodes[index].issue(invalidation, &world)
        if let number { receipts.watch(number) }
        return number
    }

    /// Records the first round of a node's run that a voter's run receives.
    private mutating func recordRoundContact(_ index: Int, by other: Int) {
        let run = nodes[other].replica.run
        guard world.isVoter(other),
            !nodes[index].roundContacts.contains(where: { $0.by == other && $0.run == run })
        else { return }
        nodes[index].roundContacts.append((now, other, run))
        if !world.isVoter(index), !receipts.isEmpty { world.cover(.joinerDuringReceipt) }
    }

    /// Handles the request of a running fetch at the origin, and schedules its response.
    private mutating func originRequested(
        _ index: Int, _ run: Int, _ number: UInt64, _ etag: Int?
    ) {
        guard nodes[index].isUp, nodes[index].replica.run == run,
            let key = nodes[index].fetches[number]?.key
        else { return }
        world.report.originFetches += 1
        if world.isQuiescent { world.report.quiescentFetches[key] += 1 }
        let slow = !world.isQuiescent && world.chance(oneIn: 10)
        world.schedule(
            .originResponded(
                index, run: run, fetch: number, world.originReply(to: key, etag: etag)),
            after: slow ? world.milliseconds(100...900) : world.milliseconds(2...60))
    }
}
