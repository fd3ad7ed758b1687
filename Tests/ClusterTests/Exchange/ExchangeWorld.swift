import Cluster
import Ground
import Testing

/// Nodes that are nothing but an exchange and a disk each, joined by connections that break.
///
/// After every event it is held against what must always be true.
struct ExchangeWorld {
    enum Message {
        case said(InvalidationMessage)
        /// With the names of all purges that the asker has applied.
        case question(Untold, Set<RecordName>)
    }

    struct Host {
        let id: NodeID
        var process = ProcessID(high: 0, low: 0)
        var exchange: InvalidationExchange?
        /// What is synced, whatever happens.
        var disk: [LogWrite] = []
        var retired: [StreamPosition] = []
        var memory: CountedMembers.Memory?
        var batch: [LogWrite]?
        /// Purges that this run has applied, or whose marks are on the disk.
        var applied: Set<RecordName> = []
        var window = FenceWindow(closedAt: .zero)
        /// Events wait until then.
        var pausedUntil = Instant.zero
        /// Names of what is on the disk.
        var synced: Set<RecordName> = []
        /// Positions that were found to be true.
        var proven: [StreamPosition] = []
        /// How many of the durable purges were seen to be here.
        var checked = 0
    }

    static let fence = Interval.seconds(2)

    var hosts: [Host] = []
    var dice: Dice
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private var lines: [[[Message]]]
    private var connected: [[Bool]]
    private var connections: UInt64 = 0
    private(set) var truth = FenceTruth()
    private(set) var names: [RecordName] = []
    private var numbers: [RecordName: Int] = [:]
    private var ids: UInt64 = 0
    private(set) var served = 0
    private(set) var currentChecks = 0
    /// Everything that came out, for comparing two runs.
    private(set) var trace: [InvalidationEffect] = []

    init(_ count: Int, seed: UInt64) {
        dice = Dice(seed: seed)
        lines = Array(repeating: Array(repeating: [], count: count), count: count)
        connected = Array(repeating: Array(repeating: false, count: count), count: count)
        for index in 0..<count { hosts.append(Host(id: Self.id(index))) }
        for index in 0..<count { start(index) }
    }

    static func id(_ index: Int) -> NodeID { NodeID(low: UInt64(index) + 1, high: 0) }
    static func index(_ id: NodeID) -> Int { Int(id.low) - 1 }

    // MARK: Runs

    mutating func start(_ index: Int) {
        hosts[index].process = ProcessID(using: &dice)
        var start = InvalidationExchange.Start(
            node: hosts[index].id, process: hosts[index].process, firstRound: dice.next())
        start.settings.fence.fence = Self.fence
        start.settings.fence.attemptPatience = .milliseconds(300)
        start.settings.fence.proposalDelay = .milliseconds(20)
        start.settings.log.delays.confirmAll = .milliseconds(200)
        start.settings.log.delays.askPatience = .milliseconds(200)
        start.kept = KeptLog(
            records: hosts[index].disk.compactMap(\.record),
            floors: hosts[index].disk.compactMap(\.floor), retired: hosts[index].retired)
        start.memory = hosts[index].memory
        start.mayOpen = hosts[index].disk.isEmpty
        hosts[index].applied = hosts[index].synced.filter { numbers[$0] != nil }
        hosts[index].batch = nil
        hosts[index].checked = 0
        hosts[index].exchange = InvalidationExchange(start, now: now)
        happens(index) { $0.started(now: $1, using: &$2, effects: &$3) }
        introduce()
        for other in hosts.indices where other != index { connect(index, other) }
        // Who is not found because it is away is to be waited for.
        if hosts.allSatisfy({ $0.disk.isEmpty }) { tell(index, .mayForm(.unanimous)) }
    }

    /// The run ends; of what was being written any part is on the disk.
    mutating func crash(_ index: Int) {
        for write in hosts[index].batch ?? [] where Bool.random(using: &dice) {
            hosts[index].disk.append(write)
            noteSynced(write, index)
        }
        hosts[index].exchange = nil
        hosts[index].batch = nil
        for other in hosts.indices where other != index { disconnect(index, other) }
        introduce()
    }

    private mutating func introduce() {
        for index in hosts.indices {
            let members = hosts.map {
                ExchangeMember($0.id, $0.process, $0.exchange == nil ? .away : .here)
            }
            tell(index, .membersChanged(members))
        }
    }

    mutating func connect(_ one: Int, _ other: Int) {
        guard hosts[one].exchange != nil, hosts[other].exchange != nil else { return }
        disconnect(one, other)
        connections += 1
        for (here, there) in [(one, other), (other, one)] {
            connected[here][there] = true
            tell(here, .connected(hosts[there].id, on: ConnectionID(connections)))
        }
    }

    func isConnected(_ one: Int, _ other: Int) -> Bool { connected[one][other] }

    mutating func disconnect(_ one: Int, _ other: Int) {
        for (here, there) in [(one, other), (other, one)] {
            lines[here][there] = []
            guard connected[here][there] else { continue }
            connected[here][there] = false
            tell(here, .disconnected(hosts[there].id))
        }
    }

    // MARK: Events

    mutating func tell(_ index: Int, _ event: ExchangeEvent) {
        happens(index) { $0.handle(event, now: $1, using: &$2, effects: &$3) }
    }

    mutating func happens(
        _ index: Int,
        _ event:
            (inout InvalidationExchange, Instant, inout Dice, inout [InvalidationEffect]) -> Void
    ) {
        guard var exchange = hosts[index].exchange else { return }
        var effects: [InvalidationEffect] = []
        event(&exchange, now, &dice, &effects)
        hosts[index].exchange = exchange
        for effect in effects { perform(effect, index) }
        trace += effects
        #expect(hosts[index].window == exchange.window, "a window that nobody was told of")
        check(index)
    }

    mutating func issue(at index: Int) {
        ids += 1
        let id = Array("\(ids)".utf8)
        let purge = Invalidation(id: id, .purge(Purge(.hard, [.url(id)])))
        happens(index) { exchange, now, dice, effects in
            let issuance = try? exchange.issue(purge, now: now, using: &dice, effects: &effects)
            #expect(issuance != nil)
        }
    }

    mutating func ask(_ index: Int, of other: Int) {
        var untold: Untold?
        let isSent = connected[index][other]
        happens(index) { exchange, _, _, _ in
            untold = exchange.untold(to: Self.id(other))
            if let untold, isSent { exchange.told(untold, to: Self.id(other)) }
        }
        guard let untold, isSent else { return }
        lines[index][other].append(.question(untold, hosts[index].applied))
    }

    mutating func sync(_ index: Int) {
        guard hosts[index].exchange != nil, let batch = hosts[index].batch else { return }
        hosts[index].batch = nil
        hosts[index].disk += batch
        for write in batch { noteSynced(write, index) }
        tell(index, .synced)
    }

    private mutating func noteSynced(_ write: LogWrite, _ index: Int) {
        switch write {
        case .note(.memory(let memory)): hosts[index].memory = memory
        case .note(.retired(let position)): hosts[index].retired.append(position)
        default: break
        }
        guard let record = write.record else { return }
        hosts[index].synced.insert(record.name)
        let isOwn = record.name.stream == hosts[index].process
        switch record.invalidation.action {
        case .count(let count):
            truth.synced(.count(count), at: hosts[index].id, isOwn: isOwn, now: now)
        default: break
        }
        // Behind a gap nothing is named, in answers or in confirmations.
        var name = record.name
        let isWhole = (1..<name.number).allSatisfy {
            hosts[index].synced.contains(RecordName(stream: name.stream, number: $0))
        }
        while isWhole, hosts[index].synced.contains(name) {
            if let number = numbers[name] {
                truth.synced(.purge(number), at: hosts[index].id, isOwn: isOwn, now: now)
            }
            name = RecordName(stream: name.stream, number: name.number + 1)
        }
    }

    mutating func pass(_ interval: Interval) {
        now = now + interval
        for index in hosts.indices where hosts[index].pausedUntil <= now {
            guard let next = hosts[index].exchange?.nextTick, next <= now else { continue }
            tell(index, .ticked)
        }
    }

    /// The first message of any connection arrives.
    mutating func deliver() {
        let from = hosts.indices.randomElement(using: &dice) ?? 0
        let to = hosts.indices.randomElement(using: &dice) ?? 0
        guard hosts[to].pausedUntil <= now, !lines[from][to].isEmpty else { return }
        deliver(from, to)
    }

    /// Everything that is on its way arrives.
    mutating func deliverAll() {
        for from in hosts.indices {
            for to in hosts.indices where !lines[from][to].isEmpty {
                while !lines[from][to].isEmpty { deliver(from, to) }
            }
        }
    }

    private mutating func deliver(_ from: Int, _ to: Int) {
        switch lines[from][to].removeFirst() {
        case .said(let message): tell(to, .message(message, from: hosts[from].id))
        case .question(let untold, let names):
            tell(
                to,
                .question(
                    knowledge: untold.positions, records: untold.records, from: hosts[from].id))
            serve(names, from: from, at: to)
        }
    }

    var isQuiet: Bool {
        lines.allSatisfy { $0.allSatisfy(\.isEmpty) } && hosts.allSatisfy { $0.batch == nil }
    }

    // MARK: What must be true

    private mutating func perform(_ effect: InvalidationEffect, _ index: Int) {
        switch effect {
        case .apply(let record, _):
            guard record.invalidation.purge != nil else { return }
            hosts[index].applied.insert(record.name)
            guard numbers[record.name] == nil else { return }
            numbers[record.name] = names.count
            names.append(record.name)
        case .write(let batch):
            #expect(hosts[index].batch == nil, "two batches at once")
            hosts[index].batch = batch
        case .send(let message, let nodes):
            for node in nodes where connected[index][Self.index(node)] {
                lines[index][Self.index(node)].append(.said(message))
                if case .push(let records) = message, let last = records.last {
                    hosts[index].exchange?.pushed(upTo: last.name.number, to: node)
                }
            }
        case .window(let window): hosts[index].window = window
        case .contradiction(let contradiction): Issue.record("\(contradiction)")
        case .applyFloors, .applyLocally, .issued, .settled: return
        }
    }

    /// Whoever does not say that it is behind has applied all that the asker had.
    private mutating func serve(_ names: Set<RecordName>, from: Int, at index: Int) {
        guard let exchange = hosts[index].exchange, !exchange.isBehind(hosts[from].id) else {
            return
        }
        served += 1
        #expect(names.isSubset(of: hosts[index].applied), "answered without what the asker had")
    }

    private mutating func check(_ index: Int) {
        guard let exchange = hosts[index].exchange else { return }
        let positions = exchange.positions
        if positions != hosts[index].proven {
            hosts[index].proven = positions
            for position in positions {
                let isKept = (1...position.count).allSatisfy {
                    hosts[index].synced.contains(
                        RecordName(stream: position.process, number: $0))
                }
                #expect(isKept, "a position covers what is not synced")
            }
        }
        guard hosts[index].window.isCurrent(at: now) else { return }
        currentChecks += 1
        while hosts[index].checked < truth.durable.count {
            let (purge, at) = truth.durable[hosts[index].checked]
            guard at + Self.fence <= now else { return }
            hosts[index].checked += 1
            #expect(
                hosts[index].applied.contains(names[purge]),
                "current without what was durable a fence ago")
        }
    }
}
