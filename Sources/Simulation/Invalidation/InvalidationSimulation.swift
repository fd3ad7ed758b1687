import Cluster
package import Ground
import Serving
import Tiers

/// A seeded simulation of whole nodes, built from the pure modules, with an origin, clients and
/// operators.
///
/// Every read is checked against the guarantees of the design (Design, "Simulation").
package struct InvalidationSimulation: Sendable {
    /// The parameters of a simulation.
    package struct Scenario: Hashable, Sendable {
        /// The seed of all randomness.
        package var seed: UInt64
        /// The number of initial nodes.
        package var nodes: Int
        /// The number of nodes that join later, all at once.
        package var joiners = 0
        /// True if the initial nodes are voters from the beginning; otherwise they form a cluster.
        package var isBootstrapped = true
        /// The number of nodes that the cluster is configured to start with; `nil` if it is not
        /// configured.
        package var expectedNodeCount: Int?
        /// The kind of directory losses.
        package var losses = DirectoryLosses.none
        /// The deliberate fault; `nil` for none.
        package var mutation: InvalidationMutation?
        /// The simulated time with faults, before the final phase without.
        package var faultDuration = Interval.seconds(30)

        /// Creates a scenario without losses and deliberate faults.
        package init(seed: UInt64, nodes: Int) {
            self.seed = seed
            self.nodes = nodes
        }
    }

    /// The ways in which nodes lose their directories.
    ///
    /// After a loss, named nodes return under their name and unnamed ones as unrelated nodes.
    package enum DirectoryLosses: Hashable, Sendable {
        case none, namedNodes, unnamedNodes
        /// All directories but one are lost at once, so that the operator has to recover the
        /// cluster.
        case majority
        /// One directory is replaced by an older copy, which few nodes can detect.
        case restoredCopy
    }

    /// A message between nodes; the number of a request is repeated in its response.
    enum SimulatedMessage: Sendable {
        case invalidation(InvalidationMessage)
        case request(UInt64, OwnerSearch.QueryKind, key: Int, UnsentInvalidations)
        case response(UInt64, EntryReply)
        case offer(key: Int, TransferKind)
    }

    /// The response to a request for an entry.
    enum EntryReply: Sendable {
        case held(version: Int, freshFor: Interval, validationAge: Interval)
        case status(OwnerSearch.Reply)
    }

    /// The response of the origin.
    enum OriginReply: Sendable {
        case failed
        /// A version of the object; `isValid` makes it a 304.
        case version(Int, isValid: Bool, isShareable: Bool)
    }

    /// A future event; unlabelled numbers are node indices.
    enum Event: Sendable {
        case arrive(from: Int, to: Int, line: UInt64, SimulatedMessage)
        case tick(Int, run: Int)
        case sync(Int, run: Int)
        case originRequested(Int, run: Int, fetch: UInt64, etag: Int?)
        case originResponded(Int, run: Int, fetch: UInt64, OriginReply)
        case lookupDeadline(Int, run: Int, fetch: UInt64)
        case promoted(Int, run: Int, fetch: UInt64)
        case reinserted(Int, run: Int, key: Int)
        case scanned(Int, run: Int)
        case housekeeping(Int, run: Int)
        case read(Int, key: Int)
        case client
        case purge(key: Int)
        case fault
        case isolate
        case reconnect(Int, Int)
        case breakLink(Int, Int, line: UInt64)
        case start(Int)
        case stop(Int, run: Int)
        case seedsResolved(Int, run: Int)
        case checkDiscovery(Int, run: Int)
        case advanceShutdown(Int, run: Int)
        case loseMajority
        case directoryLost(Int, run: Int)
        case copyAndCutOff
        case cutOff(from: Int)
        case putBack(Int)
        case runOperator
        case updateMembership
        case checkReceipts
    }

    /// The connection between two nodes, in both directions.
    struct Link: Sendable {
        var number: UInt64 = 0
        var isOpen = false
        var brokenAt = Instant.zero
    }

    static let fence = Interval.seconds(2)
    static let forgetAfter = Interval.seconds(6)

    let scenario: Scenario
    var now = Instant(nanoseconds: 100_000_000_000)
    let end: Instant
    var dice: SplitMix64
    var eventQueue = EventQueue<Event>()
    var nodes: [SimulatedCacheNode] = []
    /// The index in ``nodes`` of each present or former id.
    var places: [NodeID: Int]
    let keys: [SimulatedKey]
    /// The nodes in order of preference by key, whether or not they are up.
    let preference: [[Int]]
    var oracle: InvalidationOracle
    /// The connections, indexed by lower * count + higher.
    var links: [Link]
    /// The end of the block of each direction, indexed by from * count + to.
    var blocked: [Instant]
    var lastArrival: [Instant]
    var linkNumber: UInt64 = 0
    var requestNumber: UInt64 = 0
    var fetchNumber: UInt64 = 0
    var purgeNumber: UInt64 = 0
    var originDownUntil = Instant.zero
    /// True in the final phase without faults, in which all guarantees of a healthy cluster apply.
    var isQuiescent = false
    var trace = TraceDigest()
    var history: [String] = []
    /// The purges whose receipts are watched.
    var watchedPurges: [Int] = []

    /// The first broken guarantee; `nil` if none.
    package internal(set) var violation: String?
    /// How often each goal was reached, by raw value.
    package internal(set) var reached = Array(
        repeating: 0, count: InvalidationCoverageGoal.allCases.count)
    /// The number of reads served.
    package internal(set) var reads = 0
    /// The number of requests to the origin.
    package internal(set) var originFetches = 0
    /// How often a node made everything stale because records are no longer available.
    var floorsApplied = 0
    /// The requests to the origin in the final phase, by key.
    var quiescentFetches: [Int]
    /// The reads served in the final phase, by key; some requests may have waited since the faults.
    var quiescentReads: [Int]

    /// The digest of the trace.
    package var digest: UInt64 { trace.value }
    /// The number of traced events.
    package var eventCount: UInt64 { trace.events }
    /// The latest log lines.
    package var recentHistory: [String] { history }

    /// Creates a simulation at its beginning.
    package init(_ plan: Scenario, keys: SimulatedSite) {
        self.scenario = plan
        dice = SplitMix64(seed: plan.seed)
        self.keys = keys.keys
        preference = keys.preference
        let count = plan.nodes + plan.joiners
        precondition(count <= keys.nodes.count, "a site for \(keys.nodes.count) nodes")
        places = Dictionary(
            uniqueKeysWithValues: zip(keys.nodes.prefix(count), 0..<count))
        links = Array(repeating: Link(), count: count * count)
        blocked = Array(repeating: .zero, count: count * count)
        lastArrival = blocked
        quiescentFetches = Array(repeating: 0, count: self.keys.count)
        quiescentReads = quiescentFetches
        end = now + plan.faultDuration
        let counted = Array(keys.nodes.prefix(plan.nodes)).sorted()
        var line: [VoterSet] = []
        if plan.isBootstrapped,
            let set = VoterSet(
                founder: counted[0], generation: UInt64(max(2, plan.nodes)), members: counted)
        {
            line = [set]
        }
        let bound = Self.fence + SimulatedClock.error(in: Self.fence)
        oracle = InvalidationOracle(keys: self.keys.count, fence: bound, line: line)
        for index in 0..<count {
            let clock = SimulatedClock(from: now, using: &dice)
            var node = SimulatedCacheNode(id: keys.nodes[index], clock: clock)
            node.visibleNodes = Array(repeating: false, count: count)
            node.unseenSince = Array(repeating: nil, count: count)
            if index < plan.nodes, let set = line.first {
                node.storage.persistentState = VoterSetConsensus.PersistentState(
                    configuration: VoterConfiguration(set), joinCount: 1, records: [])
            }
            nodes.append(node)
        }
        begin()
    }

    private mutating func begin() {
        let many = nodes.count > 20
        for index in nodes.indices where index < scenario.nodes {
            let delay = scenario.isBootstrapped ? Int64(index) : Int64(index) * 150
            eventQueue.schedule(.start(index), at: now + .milliseconds(delay))
        }
        eventQueue.schedule(.client, at: now + .milliseconds(many ? 1_500 : 700))
        eventQueue.schedule(.fault, at: now + .milliseconds(1_500))
        eventQueue.schedule(.updateMembership, at: now + .milliseconds(20))
        eventQueue.schedule(.checkReceipts, at: now + .milliseconds(500))
        let third = now + .milliseconds(scenario.faultDuration.milliseconds / 3)
        if scenario.losses == .majority { eventQueue.schedule(.loseMajority, at: third) }
        if scenario.losses == .restoredCopy { eventQueue.schedule(.copyAndCutOff, at: third) }
        guard scenario.joiners > 0 else { return }
        let at = now + .milliseconds(scenario.faultDuration.milliseconds / 3)
        if scenario.joiners >= 4 { cover(.grownFromThreeToSeven) }
        for delay in [600, 1_500, 3_000] as [Int64] {
            eventQueue.schedule(.isolate, at: at + .milliseconds(delay))
        }
        for index in scenario.nodes..<nodes.count {
            eventQueue.schedule(.start(index), at: at + .milliseconds(Int64(index % 3)))
        }
    }

    // MARK: Time

    /// Returns the time on the node's clock.
    func clock(_ index: Int) -> Instant { nodes[index].clock.reading(at: now) }

    /// Returns a random interval within a range of milliseconds.
    mutating func milliseconds(_ range: ClosedRange<Int64>) -> Interval {
        // In microseconds, so that two events seldom coincide.
        let first = range.lowerBound * 1_000
        let last = range.upperBound * 1_000
        return Interval(nanoseconds: Int64.random(in: first...last, using: &dice) * 1_000)
    }

    /// Returns true with a probability of 1 in `sides`.
    mutating func chance(oneIn sides: Int) -> Bool { Int.random(in: 0..<sides, using: &dice) == 0 }

    /// Runs until `instant`, or until a guarantee is broken.
    mutating func play(until instant: Instant) {
        while violation == nil, let next = eventQueue.next, next <= instant {
            guard let (at, event) = eventQueue.popNext() else { return }
            now = at
            handle(event)
        }
        now = max(now, instant)
    }

    /// Postpones an event of a paused process until it resumes.
    private mutating func deferIfPaused(_ event: Event, for index: Int) -> Bool {
        guard nodes[index].pausedUntil > now else { return false }
        eventQueue.schedule(event, at: nodes[index].pausedUntil)
        return true
    }

    private func owner(of event: Event) -> (index: Int, run: Int?)? {
        switch event {
        case .arrive(_, let to, _, _): (to, nil)
        case .tick(let index, let run), .sync(let index, let run),
            .originResponded(let index, let run, _, _), .lookupDeadline(let index, let run, _),
            .promoted(let index, let run, _), .reinserted(let index, let run, _),
            .scanned(let index, let run), .housekeeping(let index, let run),
            .stop(let index, let run), .seedsResolved(let index, let run),
            .checkDiscovery(let index, let run),
            .advanceShutdown(let index, let run), .directoryLost(let index, let run):
            (index, run)
        case .read(let index, _): (index, nil)
        case .originRequested, .client, .purge, .fault, .isolate, .reconnect, .breakLink, .start,
            .updateMembership, .checkReceipts, .loseMajority, .copyAndCutOff, .cutOff, .putBack,
            .runOperator:
            nil
        }
    }

    private mutating func handle(_ event: Event) {
        if let (index, run) = owner(of: event) {
            guard nodes[index].isUp, run ?? nodes[index].run == nodes[index].run else { return }
            if deferIfPaused(event, for: index) { return }
        }
        switch event {
        case .arrive(let from, let to, let line, let message):
            guard self.link(from, to).isOpen, self.link(from, to).number == line else { return }
            trace.add(1, process: to, at: now)
            arrive(message, from: from, to: to)
        case .tick(let index, _): tick(index)
        case .sync(let index, _): synced(index)
        case .originRequested(let index, let run, let fetch, let etag):
            originRequested(index, run, fetch, etag)
        case .originResponded(let index, _, let fetch, let reply):
            trace.add(2, process: index, at: now)
            originResponded(index, fetch, reply)
        case .lookupDeadline(let index, _, let fetch): deadlineReached(index, fetch)
        case .promoted(let index, _, let fetch): promoted(index, fetch)
        case .reinserted(let index, _, let key): reinserted(index, key)
        case .scanned(let index, _): scanned(index)
        case .housekeeping(let index, _): runHousekeeping(index)
        case .read(let index, let key):
            trace.add(3, process: index, at: now)
            if acceptsClients(index) { request(index, key, .client) }
        case .client: stepClient()
        case .purge(let key): purge(key)
        case .fault: injectFault()
        case .isolate: isolate()
        case .reconnect(let one, let other): connect(one, other)
        case .breakLink(let one, let other, let number):
            if link(one, other).number == number { disconnect(one, other) }
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
        case .checkReceipts: checkReceipts()
        }
    }

    // MARK: Log and coverage

    /// Appends a line to the history.
    mutating func log(_ line: String) {
        if history.count > 400 { history.removeFirst(200) }
        history.append("\(now.nanoseconds / 1_000) us: \(line)")
    }

    /// Ends the run with a broken guarantee; only the first counts.
    mutating func fail(_ law: String) {
        guard violation == nil else { return }
        violation = "\(law), at \(now.nanoseconds / 1_000) us"
        log("VIOLATION \(law)")
    }

    /// Ends the run if `law` is not `nil`.
    mutating func fail(_ law: String?, _ index: Int) {
        if let law { fail("node \(index): \(law)") }
    }

    /// Counts a goal that was reached.
    mutating func cover(_ what: InvalidationCoverageGoal) { reached[what.rawValue] += 1 }
}
