import Cluster
import Ground
import Serving
import Tiers

/// The surroundings that the nodes of an invalidation simulation share: time, randomness, the
/// network, the objects at the origin, and the observer of all.
struct SimulatedWorld: Sendable {
    let scenario: InvalidationScenario
    let keys: [SimulatedKey]
    /// The nodes in order of preference by key, whether or not they are up.
    let preference: [[Int]]
    var now = Instant(nanoseconds: 100_000_000_000)
    var dice: SplitMix64
    private(set) var eventQueue = EventQueue<SimulatedEvent>()
    var network: SimulatedNetwork
    /// What membership spreads of each node.
    var members: [SimulatedMember]
    /// The index of each present or former id.
    private var places: [NodeID: Int]
    var oracle: InvalidationOracle
    var report: SimulationReport
    /// The time until which the origin fails all requests.
    var originDownUntil = Instant.zero
    /// True in the final phase without faults, in which all guarantees of a healthy cluster apply.
    var isQuiescent = false
    private var lastNumber: UInt64 = 0

    init(_ scenario: InvalidationScenario, _ site: SimulatedSite, voterSets: [VoterSet]) {
        self.scenario = scenario
        keys = site.keys
        preference = site.preference
        dice = SplitMix64(seed: scenario.seed)
        let count = scenario.nodes + scenario.joiners
        precondition(count <= site.nodes.count, "a site for \(site.nodes.count) nodes")
        members = site.nodes.prefix(count).map { SimulatedMember(id: $0) }
        places = Dictionary(uniqueKeysWithValues: zip(site.nodes, 0..<count))
        network = SimulatedNetwork(count: count)
        let fence = SimulatedReplica.fence
        oracle = InvalidationOracle(
            keys: keys.count, fence: fence + SimulatedClock.error(in: fence), line: voterSets)
        report = SimulationReport(seed: scenario.seed, keys: keys.count)
    }

    // MARK: Nodes

    /// True if the cluster has more nodes than those of most seeds.
    var isLarge: Bool { members.count > 20 }

    /// Returns the index of the node that has, or had, an id; 0 for an unknown id.
    func index(of id: NodeID) -> Int { places[id] ?? 0 }

    /// Gives a node another id.
    mutating func assign(_ id: NodeID, to index: Int) {
        members[index].id = id
        places[id] = index
    }

    /// Returns true if the node `index` is, or is connected with, `member`.
    func isConnected(_ member: NodeID, by index: Int) -> Bool {
        let other = self.index(of: member)
        guard members[other].id == member else { return false }
        return other == index || network.areConnected(index, other)
    }

    /// Returns true if the node is a voter.
    func isVoter(_ index: Int) -> Bool {
        oracle.decidedSets.last?.contains(members[index].id) ?? false
    }

    // MARK: Chance and time

    /// Returns a random interval within a range of milliseconds.
    mutating func milliseconds(_ range: ClosedRange<Int64>) -> Interval {
        // In microseconds, so that two events seldom coincide.
        let first = range.lowerBound * 1_000
        let last = range.upperBound * 1_000
        return Interval(nanoseconds: Int64.random(in: first...last, using: &dice) * 1_000)
    }

    /// Returns true with a probability of 1 in `sides`.
    mutating func chance(oneIn sides: Int) -> Bool { Int.random(in: 0..<sides, using: &dice) == 0 }

    /// Schedules an event after `delay`.
    mutating func schedule(_ event: SimulatedEvent, after delay: Interval) {
        eventQueue.schedule(event, at: now + delay)
    }

    /// Schedules an event at `instant`.
    mutating func schedule(_ event: SimulatedEvent, at instant: Instant) {
        eventQueue.schedule(event, at: instant)
    }

    /// Schedules the first events: the starts of the nodes, the clients and the faults.
    mutating func scheduleBeginning() {
        for index in 0..<scenario.nodes {
            let delay = scenario.isBootstrapped ? Int64(index) : Int64(index) * 150
            schedule(.start(index), after: .milliseconds(delay))
        }
        schedule(.client, after: .milliseconds(isLarge ? 1_500 : 700))
        schedule(.fault, after: .milliseconds(1_500))
        schedule(.updateMembership, after: .milliseconds(20))
        schedule(.checkReceipts, after: .milliseconds(500))
        let third = Interval.milliseconds(scenario.faultDuration.milliseconds / 3)
        if scenario.losses == .majority { schedule(.loseMajority, after: third) }
        if scenario.losses == .restoredCopy { schedule(.copyAndCutOff, after: third) }
        guard scenario.joiners > 0 else { return }
        if scenario.joiners >= 4 { cover(.grownFromThreeToSeven) }
        for delay in [600, 1_500, 3_000] as [Int64] {
            schedule(.isolate, after: third + .milliseconds(delay))
        }
        for index in scenario.nodes..<members.count {
            schedule(.start(index), after: third + .milliseconds(Int64(index % 3)))
        }
    }

    /// Removes the next event up to `end` and advances the time to it; `nil` if there is none.
    mutating func takeNext(until end: Instant) -> SimulatedEvent? {
        guard let next = eventQueue.next, next <= end, let (at, event) = eventQueue.popNext()
        else { return nil }
        now = at
        return event
    }

    /// Returns a number that no request and no fetch had before.
    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// Sends a message after a random delay, if the connection is open.
    mutating func send(_ message: SimulatedMessage, from: Int, to: Int) {
        let link = network.link(from, to)
        guard link.isOpen else { return }
        var delay = milliseconds(1...4)
        if !isQuiescent {
            // A lost frame is retransmitted and delays those behind it.
            if chance(oneIn: 40) { delay = milliseconds(30...400) }
            delay = delay + network.delay(from: from, to: to, at: now)
        }
        let at = network.arrival(from: from, to: to, at: now + delay)
        schedule(.arrive(from: from, to: to, line: link.number, message), at: at)
    }

    // MARK: The origin and its purges

    /// Returns the origin's response to a request with the validator of version `etag`.
    mutating func originReply(to key: Int, etag: Int?) -> OriginReply {
        guard originDownUntil <= now else { return .failed }
        let version = oracle.version(of: key)
        let isShareable = isQuiescent || !chance(oneIn: 20)
        return .version(version, isValid: version == etag, isShareable: isShareable)
    }

    /// Records that a node has issued a purge, and returns its number in the oracle; `nil`, with
    /// the run failed, if its record was issued before.
    mutating func purgeIssued(_ purge: Purge, as name: RecordID, by index: Int) -> Int? {
        guard oracle.purgeNumbers[name] == nil else {
            fail("number \(name.number) of \(name.stream) was given twice")
            return nil
        }
        let marks = purge.marks(at: .last)
        let covers = keys.map { key in
            marks.contains { $0.effect(on: key.url, tags: key.tags, version: .zero) != nil }
        }
        let number = oracle.issued(
            InvalidationOracle.PurgeFacts(
                isHard: purge.mode == .hard, covers: covers, issuedAt: now, name: name))
        log("purge \(number) at \(index): \(purge.mode) of \(covers.map { $0 ? 1 : 0 })")
        return number
    }

    /// Checks a read at a node against the guarantees.
    mutating func check(
        _ entry: SimulatedEntry, isFresh: Bool, readAt replica: SimulatedReplica
    ) {
        report.reads += 1
        if isQuiescent { report.quiescentReads[entry.key] += 1 }
        report.trace.add(UInt64(entry.key) << 32 | UInt64(entry.contentVersion))
        let isCurrent = replica.hasOpenWindow(at: now)
        let isCounted = isVoter(replica.index)
        let reader = InvalidationOracle.ReadContext(
            process: replica.process, applied: replica.applied, isBound: isCurrent || isCounted)
        let fault = oracle.violation(
            key: entry.key, version: entry.contentVersion, isFresh: isFresh, by: reader, at: now)
        guard let fault else { return }
        let version = entry.invalidationVersion
        fail(
            "node \(replica.index) served key \(entry.key) version \(entry.contentVersion) of "
                + "\(oracle.version(of: entry.key)), version \(version.epoch).\(version.count), "
                + "current \(isCurrent), voter \(isCounted): \(fault)")
    }

    // MARK: Log and coverage

    /// Appends a line to the history.
    mutating func log(_ line: String) { report.log(line, at: now) }

    /// Ends the run with a broken guarantee; only the first counts.
    mutating func fail(_ law: String) { report.fail(law, at: now) }

    /// Ends the run if `law` is not `nil`.
    mutating func fail(_ law: String?, _ index: Int) {
        if let law { fail("node \(index): \(law)") }
    }

    /// Counts a goal that was reached.
    mutating func cover(_ goal: InvalidationCoverageGoal) { report.reached[goal.rawValue] += 1 }

    /// Traces an event of a node.
    mutating func trace(_ code: UInt8, _ index: Int) {
        report.trace.add(code, process: index, at: now)
    }
}

/// The observations of one run of an invalidation simulation.
struct SimulationReport: Sendable {
    var trace = TraceDigest()
    private(set) var history: RunHistory
    /// The first broken guarantee; `nil` if none.
    private(set) var violation: String?
    /// How often each goal was reached, by raw value.
    var reached = Array(repeating: 0, count: InvalidationCoverageGoal.allCases.count)
    /// The number of reads served.
    var reads = 0
    /// The number of requests to the origin.
    var originFetches = 0
    /// How often a node made everything stale because records are no longer available.
    var floorsApplied = 0
    /// The requests to the origin in the final phase, by key.
    var quiescentFetches: [Int]
    /// The reads served in the final phase, by key; some requests may have waited since the faults.
    var quiescentReads: [Int]

    init(seed: UInt64, keys: Int) {
        history = RunHistory(seed: seed, showing: 120)
        quiescentFetches = Array(repeating: 0, count: keys)
        quiescentReads = quiescentFetches
    }

    /// Appends a line to the history.
    mutating func log(_ line: String, at now: Instant) {
        history.append("\(now.nanoseconds / 1_000) us: \(line)")
    }

    /// Records a broken guarantee, which ends the run; only the first counts.
    mutating func fail(_ law: String, at now: Instant) {
        guard violation == nil else { return }
        violation = "\(law), at \(now.nanoseconds / 1_000) us"
        log("VIOLATION \(law)", at: now)
    }
}
