import Cluster
import Ground

/// Nodes with clocks, disks and one-way links, under one seed.
struct FenceWorld {
    /// What is done wrong on purpose, here and not in the product.
    enum Mutation: CaseIterable {
        case contactTimedFromTheAnswer
        case fenceAsATimer
        case forgettingWhileFenced
        case catchUpFromOneMember
        case answerTrustedUnapplied
    }

    enum Message {
        case question(round: UInt64)
        case answer(FenceAnswer)
        case want([StreamPosition])
        case records([WorldRecord])
    }

    enum Event {
        case deliver(Message, from: Int, to: Int)
        case tick(Int)
        case sync(Int)
        case read(Int)
        case start(Int)
        case fault
        case purge
    }

    static let fence = Interval.seconds(2)

    let mutation: Mutation?
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    var dice: Dice
    var nodes: [FenceWorldNode] = []
    private(set) var truth = FenceTruth()
    /// What went wrong, in words.
    private(set) var violations: [String] = []
    var tally = Tally()
    /// Links that carry nothing until then.
    var blocked: [[Instant]]
    private var lastDelivery: [[Instant]]
    private var queue: [Instant: [Event]] = [:]
    private var times = TimeHeap()
    private var purgeCount = 0
    /// How many of the durable purges each node's run was seen to have.
    private var checked: [Int]

    /// How often the world came to what it is there for.
    struct Tally: Equatable {
        var reads = 0
        var freshReads = 0
        var crashes = 0
        var pauses = 0
        var partitions = 0
        var leaves = 0
        /// Times at which two nodes began to forget different members.
        var rivals = 0
    }

    /// `count` nodes, the first of which opens the cluster; the others come one by one.
    init(seed: UInt64, count: Int, mutation: Mutation? = nil) {
        self.mutation = mutation
        dice = Dice(seed: seed)
        let row = [Instant](repeating: .zero, count: count)
        checked = [Int](repeating: 0, count: count)
        blocked = [[Instant]](repeating: row, count: count)
        lastDelivery = blocked
        var settings = Fence.Settings()
        settings.fence = Self.fence
        settings.forgetAfter = .seconds(8)
        // All who see the same propose at once, and do not wait for each other.
        settings.attemptPatience = .milliseconds(200)
        settings.proposalDelay = .zero
        for index in 0..<count {
            let id = NodeID(low: dice.next() % 1_000 * 100 + UInt64(index), high: 0)
            nodes.append(FenceWorldNode(id: id, settings: settings))
            schedule(.start(index), after: .milliseconds(Int64(index) * 1_500))
        }
        schedule(.purge, after: .seconds(1))
        schedule(.fault, after: .seconds(Int64(count) * 2))
    }

    // MARK: Time

    mutating func schedule(_ event: Event, after delay: Interval) {
        let at = now + delay
        if queue[at] == nil { times.insert(at) }
        queue[at, default: []].append(event)
    }

    mutating func milliseconds(_ range: ClosedRange<Int64>) -> Interval {
        .milliseconds(Int64.random(in: range, using: &dice))
    }

    mutating func run(for interval: Interval) {
        let end = now + interval
        while let at = times.first, at <= end, violations.isEmpty {
            times.removeFirst()
            now = at
            for event in queue.removeValue(forKey: at) ?? [] { happen(event) }
        }
        now = end
    }

    private mutating func happen(_ event: Event) {
        switch event {
        case .deliver(_, _, let index), .tick(let index), .sync(let index):
            if nodes[index].pausedUntil > now {
                return schedule(event, after: nodes[index].pausedUntil - now)
            }
        case .read, .start, .fault, .purge: break
        }
        switch event {
        case .deliver(let message, let from, let to): deliver(message, from: from, to: to)
        case .tick(let index): tick(index)
        case .sync(let index): sync(index)
        case .read(let index): read(index)
        case .start(let index): start(index)
        case .fault: fault()
        case .purge: purge()
        }
    }

    // MARK: Links

    mutating func send(_ message: Message, from: Int, to: Int) {
        guard blocked[from][to] <= now, Int.random(in: 0..<20, using: &dice) > 0 else { return }
        let isSlow = Int.random(in: 0..<10, using: &dice) == 0
        let at = max(now + milliseconds(isSlow ? 30...500 : 1...30), lastDelivery[from][to])
        lastDelivery[from][to] = at
        schedule(.deliver(message, from: from, to: to), after: at - now)
    }

    private mutating func deliver(_ message: Message, from: Int, to: Int) {
        guard nodes[to].isUp else { return }
        switch message {
        case .question(let round):
            guard let said = nodes[to].keeper?.view(at: now) else { return }
            let answer = FenceAnswer(round: round, holds: said.holds, view: said.view)
            send(.answer(answer), from: to, to: from)
        case .answer(var answer):
            if mutation == .contactTimedFromTheAnswer {
                answer.round = nodes[to].keeper?.round(at: now)
            }
            if mutation == .answerTrustedUnapplied { tell(to, [.applied(answer.holds)]) }
            tell(to, [.heard(answer, nodes[from].id)])
            let known = nodes[to].appliedPositions
            if !KnownPositions(known).covers(answer.holds) {
                send(.want(known), from: to, to: from)
            }
        case .want(let positions):
            send(.records(nodes[to].missing(positions)), from: to, to: from)
        case .records(let records):
            tell(to, nodes[to].apply(records))
            scheduleSync(to)
        }
    }

    mutating func tell(_ index: Int, _ events: [FenceEvent]) {
        perform(nodes[index].tell(events, now, using: &dice), at: index)
    }

    mutating func perform(_ news: [FenceNews], at index: Int) {
        for news in news {
            for question in news.questions {
                for to in nodes.indices where question.members.contains(nodes[to].id) {
                    send(.question(round: question.round), from: index, to: to)
                }
            }
            for record in news.records { write(.count(record), at: index) }
        }
    }

    // MARK: Nodes

    private mutating func write(_ content: WorldRecord.Content, at index: Int) {
        tell(index, nodes[index].write(content))
        scheduleSync(index)
    }

    private mutating func scheduleSync(_ index: Int) {
        guard !nodes[index].isSyncDue else { return }
        nodes[index].isSyncDue = true
        schedule(.sync(index), after: milliseconds(1...20))
    }

    private mutating func sync(_ index: Int) {
        guard nodes[index].isUp, nodes[index].isSyncDue else { return }
        let (events, new) = nodes[index].sync()
        let node = nodes[index]
        for record in new {
            let isOwn = record.process == node.process
            truth.synced(record.content, at: node.id, isOwn: isOwn, now: now)
        }
        tell(index, events)
        let own = new.filter { $0.process == node.process }
        for to in nodes.indices where to != index && !own.isEmpty {
            send(.records(own), from: index, to: to)
        }
    }

    private mutating func start(_ index: Int) {
        guard !nodes[index].isUp else { return }
        nodes[index].pausedUntil = .zero
        checked[index] = 0
        perform(nodes[index].start(now, using: &dice), at: index)
        if index == 0 { tell(0, [.opens()]) }
        schedule(.tick(index), after: .milliseconds(1))
    }

    private mutating func tick(_ index: Int) {
        guard nodes[index].isUp else { return }
        if nodes[index].pausedUntil == now { nodes[index].pausedUntil = .zero }
        let reached = nodes.indices.filter { nodes[$0].isUp && $0 != index }
        if reached != nodes[index].reached {
            nodes[index].reached = reached
            tell(index, [.reached(reached.map { nodes[$0].id })])
        }
        tell(index, [.ticked])
        let isCurrent = nodes[index].keeper?.window.isCurrent(at: now) ?? false
        nodes[index].flag = isCurrent
        if mutation == .forgettingWhileFenced { forgetFenced(index, isCurrent) }
        read(index)
        if let keeper = nodes[index].keeper, keeper.hasLeft {
            tally.leaves += 1
            nodes[index].crash()
            return schedule(.start(index), after: milliseconds(1_000...20_000))
        }
        schedule(.tick(index), after: .milliseconds(100))
    }

    private mutating func purge() {
        schedule(.purge, after: milliseconds(50...600))
        let index = Int.random(in: nodes.indices, using: &dice)
        guard nodes[index].isUp, nodes[index].pausedUntil <= now else { return }
        purgeCount += 1
        write(.purge(purgeCount), at: index)
    }

    // MARK: Reads

    /// A request is decided at `index` now; nothing that is overdue may be missing.
    private mutating func read(_ index: Int) {
        let node = nodes[index]
        guard let keeper = node.keeper else { return }
        tally.reads += 1
        checkSet(node, keeper)
        guard serves(node, keeper) else { return }
        tally.freshReads += 1
        while checked[index] < truth.durable.count {
            let (purge, at) = truth.durable[checked[index]]
            guard at + Self.fence <= now else { return }
            guard node.purges.contains(purge) else {
                violations.append("\(node.id) served what purge \(purge) covers, at \(now)")
                return
            }
            checked[index] += 1
        }
    }

    private func serves(_ node: FenceWorldNode, _ keeper: FenceKeeper) -> Bool {
        if mutation == .fenceAsATimer { return node.flag }
        if mutation == .catchUpFromOneMember, !keeper.counted.isCounted {
            let set = keeper.counted.standing?.set.members ?? []
            return set.contains { keeper.fence.isInContact(with: $0, at: now) }
        }
        return keeper.window.isCurrent(at: now)
    }

    /// No generation has two sets, and nobody follows one that is not decided.
    private mutating func checkSet(_ node: FenceWorldNode, _ keeper: FenceKeeper) {
        guard mutation == nil, let set = keeper.counted.standing?.set else { return }
        let place = Int(set.generation) - 1
        guard !truth.line.isEmpty, place > 0 else { return }
        if place >= truth.line.count || truth.line[place] != set {
            violations.append("\(node.id) follows \(set), which was not decided")
        }
    }
}
