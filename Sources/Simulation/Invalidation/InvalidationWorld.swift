import Cluster
package import Ground
import Serving
import Tiers

/// Whole nodes of the pure rooms, an origin with versions, clients and operators, under one seed;
/// every read is held against what the design promises.
package struct InvalidationWorld: Sendable {
    /// How a world is made.
    package struct Plan: Hashable, Sendable {
        package var seed: UInt64
        /// Nodes at the beginning, and those that come all at once later.
        package var nodes: Int
        package var joiners = 0
        /// The first nodes are counted already; else they look for each other.
        package var isFormed = true
        /// How many they expect to be, if they look for each other by number.
        package var expects: Int?
        /// Nodes lose their directories, and come back under their names or without.
        package var losses = Losses.none
        package var mutation: InvalidationMutation?
        /// How long there is trouble; calm follows.
        package var trouble = Interval.seconds(30)

        package init(seed: UInt64, nodes: Int) {
            self.seed = seed
            self.nodes = nodes
        }
    }

    package enum Losses: Hashable, Sendable {
        case none, ofNamed, ofUnnamed
        /// All but one at once, and nobody but the operator can say what holds.
        case ofMajority
        /// One directory is replaced by an older copy, where few know better.
        case ofCopied
    }

    enum Message: Sendable {
        case said(InvalidationMessage)
        case ask(UInt64, OwnerSearch.Question, key: Int, Untold)
        case reply(UInt64, Reply)
        case offer(key: Int, EntryPath)
    }

    enum Reply: Sendable {
        case held(version: Int, freshFor: Interval, validationAge: Interval)
        case said(OwnerSearch.Reply)
    }

    enum OriginReply: Sendable {
        case failed
        /// With `isValid` only that this version is still the one.
        case version(Int, isValid: Bool, isShareable: Bool)
    }

    enum Event: Sendable {
        case arrive(from: Int, to: Int, line: UInt64, Message)
        case tick(Int, run: Int)
        case sync(Int, run: Int)
        case originAsked(Int, run: Int, fill: UInt64, etag: Int?)
        case originAnswered(Int, run: Int, fill: UInt64, OriginReply)
        case lookup(Int, run: Int, fill: UInt64)
        case promoted(Int, run: Int, fill: UInt64)
        case reinserted(Int, run: Int, key: Int)
        case scanned(Int, run: Int)
        case housekeeping(Int, run: Int)
        case read(Int, key: Int)
        case client
        case purge(key: Int)
        case fault
        case isolate
        case reconnect(Int, Int)
        case breakLine(Int, Int, line: UInt64)
        case start(Int)
        case stop(Int, run: Int)
        case lookedUp(Int, run: Int)
        case look(Int, run: Int)
        case depart(Int, run: Int)
        case loseMajority
        case lost(Int, run: Int)
        case copyAndCutOff
        case cutOff(from: Int)
        case putBack(Int)
        case operate
        case introduce
        case receipts
    }

    /// Both directions between two nodes.
    struct Line: Sendable {
        var number: UInt64 = 0
        var isOpen = false
        var brokenAt = Instant.zero
    }

    static let fence = Interval.seconds(2)
    static let forgetAfter = Interval.seconds(6)

    let plan: Plan
    var now = Instant(nanoseconds: 100_000_000_000)
    let end: Instant
    var dice: Dice
    var timeline = Timeline<Event>()
    var nodes: [SimulatedCacheNode] = []
    /// Where in ``nodes`` each stands, or stood.
    var places: [NodeID: Int]
    let keys: [SimulatedKey]
    /// By key the nodes in order of preference, whoever is there.
    let preference: [[Int]]
    var truth: InvalidationTruth
    /// At lower * count + higher.
    var lines: [Line]
    /// At from * count + to.
    var blocked: [Instant]
    var lastArrival: [Instant]
    var lineNumber: UInt64 = 0
    var askNumber: UInt64 = 0
    var fillNumber: UInt64 = 0
    var purgeNumber: UInt64 = 0
    var isOriginDown = Instant.zero
    /// The rest is calm: no faults, and every promise of a healthy cluster is due.
    var isCalm = false
    var trace = TraceDigest()
    var history: [String] = []
    /// Purges whose receipts somebody waits for.
    var watched: [Int] = []

    package internal(set) var violation: String?
    /// How often each class was reached.
    package internal(set) var reached = Array(
        repeating: 0, count: InvalidationClass.allCases.count)
    package internal(set) var reads = 0
    package internal(set) var originFetches = 0
    /// How often a node made everything stale because records can no longer be had.
    var floorsApplied = 0
    /// Requests to the origin by key, in calm.
    var calmFetches: [Int]
    /// Reads that were served by key, in calm; some of other keys have waited since the faults.
    var calmReads: [Int]

    package var digest: UInt64 { trace.value }
    package var eventCount: UInt64 { trace.events }
    /// The last things that happened.
    package var story: [String] { history }

    package init(_ plan: Plan, keys: SimulatedSite) {
        self.plan = plan
        dice = Dice(seed: plan.seed)
        self.keys = keys.keys
        preference = keys.preference
        let count = plan.nodes + plan.joiners
        precondition(count <= keys.nodes.count, "a site for \(keys.nodes.count) nodes")
        places = Dictionary(
            uniqueKeysWithValues: zip(keys.nodes.prefix(count), 0..<count))
        lines = Array(repeating: Line(), count: count * count)
        blocked = Array(repeating: .zero, count: count * count)
        lastArrival = blocked
        calmFetches = Array(repeating: 0, count: self.keys.count)
        calmReads = calmFetches
        end = now + plan.trouble
        let counted = Array(keys.nodes.prefix(plan.nodes)).sorted()
        var line: [CountedSet] = []
        if plan.isFormed,
            let set = CountedSet(
                opener: counted[0], generation: UInt64(max(2, plan.nodes)), members: counted)
        {
            line = [set]
        }
        let bound = Self.fence + SimulatedClock.error(in: Self.fence)
        truth = InvalidationTruth(keys: self.keys.count, fence: bound, line: line)
        for index in 0..<count {
            let clock = SimulatedClock(from: now, using: &dice)
            var node = SimulatedCacheNode(id: keys.nodes[index], clock: clock)
            node.isSeen = Array(repeating: false, count: count)
            node.unseenSince = Array(repeating: nil, count: count)
            if index < plan.nodes, let set = line.first {
                node.storage.memory = CountedMembers.Memory(
                    standing: CountStanding(set), joins: 1, records: [])
            }
            nodes.append(node)
        }
        begin()
    }

    private mutating func begin() {
        let many = nodes.count > 20
        for index in nodes.indices where index < plan.nodes {
            let delay = plan.isFormed ? Int64(index) : Int64(index) * 150
            timeline.plan(.start(index), at: now + .milliseconds(delay))
        }
        timeline.plan(.client, at: now + .milliseconds(many ? 1_500 : 700))
        timeline.plan(.fault, at: now + .milliseconds(1_500))
        timeline.plan(.introduce, at: now + .milliseconds(20))
        timeline.plan(.receipts, at: now + .milliseconds(500))
        let third = now + .milliseconds(plan.trouble.milliseconds / 3)
        if plan.losses == .ofMajority { timeline.plan(.loseMajority, at: third) }
        if plan.losses == .ofCopied { timeline.plan(.copyAndCutOff, at: third) }
        guard plan.joiners > 0 else { return }
        let at = now + .milliseconds(plan.trouble.milliseconds / 3)
        if plan.joiners >= 4 { reach(.threeToSeven) }
        for delay in [600, 1_500, 3_000] as [Int64] {
            timeline.plan(.isolate, at: at + .milliseconds(delay))
        }
        for index in plan.nodes..<nodes.count {
            timeline.plan(.start(index), at: at + .milliseconds(Int64(index % 3)))
        }
    }

    // MARK: Time

    func clock(_ index: Int) -> Instant { nodes[index].clock.reading(at: now) }

    mutating func milliseconds(_ range: ClosedRange<Int64>) -> Interval {
        // In microseconds: two things are seldom at one instant.
        let first = range.lowerBound * 1_000
        let last = range.upperBound * 1_000
        return Interval(nanoseconds: Int64.random(in: first...last, using: &dice) * 1_000)
    }

    mutating func throwsOne(in sides: Int) -> Bool { Int.random(in: 0..<sides, using: &dice) == 0 }

    /// Plays until `instant`, or until a promise is broken.
    mutating func play(until instant: Instant) {
        while violation == nil, let next = timeline.next, next <= instant {
            guard let (at, event) = timeline.takeNext() else { return }
            now = at
            happen(event)
        }
        now = max(now, instant)
    }

    /// What is meant for a process that stands still waits until it goes on.
    private mutating func waits(_ event: Event, for index: Int) -> Bool {
        guard nodes[index].pausedUntil > now else { return false }
        timeline.plan(event, at: nodes[index].pausedUntil)
        return true
    }

    private func owner(of event: Event) -> (index: Int, run: Int?)? {
        switch event {
        case .arrive(_, let to, _, _): (to, nil)
        case .tick(let index, let run), .sync(let index, let run),
            .originAnswered(let index, let run, _, _), .lookup(let index, let run, _),
            .promoted(let index, let run, _), .reinserted(let index, let run, _),
            .scanned(let index, let run), .housekeeping(let index, let run),
            .stop(let index, let run), .lookedUp(let index, let run), .look(let index, let run),
            .depart(let index, let run), .lost(let index, let run):
            (index, run)
        case .read(let index, _): (index, nil)
        case .originAsked, .client, .purge, .fault, .isolate, .reconnect, .breakLine, .start,
            .introduce, .receipts, .loseMajority, .copyAndCutOff, .cutOff, .putBack, .operate:
            nil
        }
    }

    private mutating func happen(_ event: Event) {
        if let (index, run) = owner(of: event) {
            guard nodes[index].isUp, run ?? nodes[index].run == nodes[index].run else { return }
            if waits(event, for: index) { return }
        }
        switch event {
        case .arrive(let from, let to, let line, let message):
            guard self.line(from, to).isOpen, self.line(from, to).number == line else { return }
            trace.note(1, process: to, at: now)
            arrive(message, from: from, to: to)
        case .tick(let index, _): tick(index)
        case .sync(let index, _): synced(index)
        case .originAsked(let index, let run, let fill, let etag):
            originAsked(index, run, fill, etag)
        case .originAnswered(let index, _, let fill, let reply):
            trace.note(2, process: index, at: now)
            originAnswered(index, fill, reply)
        case .lookup(let index, _, let fill): deadlineReached(index, fill)
        case .promoted(let index, _, let fill): promoted(index, fill)
        case .reinserted(let index, _, let key): reinserted(index, key)
        case .scanned(let index, _): scanned(index)
        case .housekeeping(let index, _): keepHouse(index)
        case .read(let index, let key):
            trace.note(3, process: index, at: now)
            if isOpen(index) { request(index, key, .client) }
        case .client: client()
        case .purge(let key): purge(key)
        case .fault: fault()
        case .isolate: isolate()
        case .reconnect(let one, let other): connect(one, other)
        case .breakLine(let one, let other, let number):
            if line(one, other).number == number { disconnect(one, other) }
        case .start(let index): start(index)
        case .stop(let index, _): crash(index)
        case .lookedUp(let index, _): lookedUp(index)
        case .look(let index, _): look(index)
        case .depart(let index, _): depart(index)
        case .loseMajority: loseMajority()
        case .lost(let index, _): lose(index)
        case .copyAndCutOff: copyAndCutOff()
        case .cutOff(let index): cutOff(from: index)
        case .putBack(let index): putBack(index)
        case .operate: operate()
        case .introduce: introduceAll()
        case .receipts: lookAtReceipts()
        }
    }

    // MARK: Telling what happened

    mutating func note(_ line: String) {
        if history.count > 400 { history.removeFirst(200) }
        history.append("\(now.nanoseconds / 1_000) us: \(line)")
    }

    mutating func fail(_ law: String) {
        guard violation == nil else { return }
        violation = "\(law), at \(now.nanoseconds / 1_000) us"
        note("VIOLATION \(law)")
    }

    mutating func fail(_ law: String?, _ index: Int) {
        if let law { fail("node \(index): \(law)") }
    }

    mutating func reach(_ what: InvalidationClass) { reached[what.rawValue] += 1 }
}
