import Cluster
import Ground

/// How long purges take to every node of a big cluster that loses packets, and what they cost.
///
/// What is lost is sent again and holds up what follows it on its connection: after 200 ms, and
/// twice as long each further time.
package struct InvalidationSpread: Sendable {
    enum Event: Sendable {
        case arrive(InvalidationMessage, from: Int, to: Int)
        case synced(Int)
        case tick(Int)
    }

    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private var dice: Dice
    private let loss: Double
    private var timeline = Timeline<Event>()
    private(set) var exchanges: [InvalidationExchange] = []
    private let ids: [NodeID]
    private var places: [NodeID: Int] = [:]
    private var lastArrival: [Instant]
    private var plannedTicks: [Instant]
    /// Of a load that is being played.
    var load: LoadRecord?

    /// `loss`: of packets, 0 to 1.
    package init(seed: UInt64, nodes count: Int, loss: Double) {
        var dice = Dice(seed: seed)
        self.loss = loss
        let ids = (0..<count).map { _ in NodeID(using: &dice) }.sorted()
        self.ids = ids
        for (place, id) in ids.enumerated() { places[id] = place }
        lastArrival = Array(repeating: .zero, count: count * count)
        plannedTicks = Array(repeating: .distantFuture, count: count)
        let set = CountedSet(opener: ids[0], generation: UInt64(count), members: ids)
        for id in ids {
            var start = InvalidationExchange.Start(
                node: id, process: ProcessID(using: &dice), firstRound: dice.next())
            if let set {
                start.memory = CountedMembers.Memory(
                    standing: CountStanding(set), joins: 1, records: [])
            }
            exchanges.append(InvalidationExchange(start, now: now))
        }
        self.dice = dice
        begin()
    }

    private mutating func begin() {
        let members = zip(ids, exchanges).map { ExchangeMember($0, $1.process, .here) }
        for index in exchanges.indices {
            run(index) { $0.started(now: $1, using: &$2, effects: &$3) }
            tell(index, .membersChanged(members))
        }
        var connection: UInt64 = 0
        for one in exchanges.indices {
            for other in 0..<one {
                connection += 1
                tell(one, .connected(ids[other], on: ConnectionID(connection)))
                tell(other, .connected(ids[one], on: ConnectionID(connection)))
            }
        }
    }

    mutating func play(until isOver: (Instant) -> Bool) {
        while !isOver(now), step() {}
    }

    mutating func step() -> Bool {
        guard let (at, event) = timeline.takeNext() else { return false }
        now = at
        switch event {
        case .arrive(let message, let from, let to): tell(to, .message(message, from: ids[from]))
        case .synced(let index): tell(index, .synced)
        case .tick(let index):
            plannedTicks[index] = .distantFuture
            tell(index, .ticked)
        }
        return true
    }

    private mutating func tell(_ index: Int, _ event: ExchangeEvent) {
        run(index) { $0.handle(event, now: $1, using: &$2, effects: &$3) }
    }

    mutating func run(
        _ index: Int,
        _ event: (inout InvalidationExchange, Instant, inout Dice, inout [InvalidationEffect]) ->
            Void
    ) {
        var effects: [InvalidationEffect] = []
        event(&exchanges[index], now, &dice, &effects)
        for effect in effects {
            switch effect {
            case .write:
                let delay = Int64.random(in: 500_000...5_000_000, using: &dice)
                timeline.plan(.synced(index), at: now + Interval(nanoseconds: delay))
            case .apply(let record, _): load?.applied(record.name, at: now)
            case .settled(let number): load?.settled(upTo: number, by: index, at: now)
            case .send(let message, let ids):
                load?.sends(message, to: ids.count, from: index)
                for to in ids.compactMap({ places[$0] }) { send(message, from: index, to: to) }
            default: break
            }
        }
        let next = max(exchanges[index].nextTick, now) + .milliseconds(1)
        guard next < plannedTicks[index] else { return }
        plannedTicks[index] = next
        timeline.plan(.tick(index), at: next)
    }

    private mutating func send(_ message: InvalidationMessage, from: Int, to: Int) {
        var delay = Interval(nanoseconds: Int64.random(in: 500_000...1_500_000, using: &dice))
        var again = Interval.milliseconds(200)
        while Double.random(in: 0..<1, using: &dice) < loss {
            delay = delay + again
            again = again + again
        }
        let way = from * ids.count + to
        let at = max(now + delay, lastArrival[way])
        lastArrival[way] = at
        timeline.plan(.arrive(message, from: from, to: to), at: at)
    }
}
