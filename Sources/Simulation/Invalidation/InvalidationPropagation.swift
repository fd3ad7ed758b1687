import Cluster
package import Ground

/// A simulation of a large cluster with packet loss, which measures the latency and cost of purges.
///
/// A lost packet is retransmitted after 200 ms, with the time doubling for each further loss, and
/// delays everything behind it on its connection.
package struct InvalidationPropagation: Sendable {
    /// A future event; numbers are node indices.
    enum Event: Sendable {
        case arrive(InvalidationMessage, from: Int, to: Int)
        case synced(Int)
        case tick(Int)
    }

    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private var dice: SplitMix64
    private let loss: Double
    private var eventQueue = EventQueue<Event>()
    private(set) var replications: [InvalidationReplication] = []
    private let ids: [NodeID]
    private var places: [NodeID: Int] = [:]
    /// The arrival of the last message of each direction, indexed by from * count + to.
    private var lastArrival: [Instant]
    /// The scheduled tick of each node; `.distantFuture` for none.
    private var plannedTicks: [Instant]
    /// The load in progress.
    var load: LoadTracker?

    /// Creates a cluster of `count` connected nodes.
    ///
    /// - Parameters:
    ///   - seed: The seed of all randomness.
    ///   - count: The number of nodes.
    ///   - loss: The share of lost packets, from 0 to 1.
    package init(seed: UInt64, nodes count: Int, loss: Double) {
        var dice = SplitMix64(seed: seed)
        self.loss = loss
        let ids = (0..<count).map { _ in NodeID(using: &dice) }.sorted()
        self.ids = ids
        for (place, id) in ids.enumerated() { places[id] = place }
        lastArrival = Array(repeating: .zero, count: count * count)
        plannedTicks = Array(repeating: .distantFuture, count: count)
        let set = VoterSet(founder: ids[0], generation: UInt64(count), members: ids)
        for id in ids {
            var start = InvalidationReplication.InitialState(
                node: id, process: ProcessID(using: &dice), firstRound: dice.next())
            if let set {
                start.persistentState = VoterSetConsensus.PersistentState(
                    configuration: VoterConfiguration(set), joinCount: 1, records: [])
            }
            replications.append(InvalidationReplication(start, now: now))
        }
        self.dice = dice
        begin()
    }

    /// Starts all nodes with all as members, and connects each two.
    private mutating func begin() {
        let members = zip(ids, replications).map { ReplicationMember($0, $1.process, .live) }
        for index in replications.indices {
            run(index) { $0.started(now: $1, using: &$2, effects: &$3) }
            deliver(index, .membersChanged(members))
        }
        var connection: UInt64 = 0
        for one in replications.indices {
            for other in 0..<one {
                connection += 1
                deliver(one, .connected(ids[other], on: ConnectionID(connection)))
                deliver(other, .connected(ids[one], on: ConnectionID(connection)))
            }
        }
    }

    /// Handles events until `isOver` holds or none is left.
    mutating func play(until isOver: (Instant) -> Bool) {
        while !isOver(now), step() {}
    }

    /// Handles the next event; returns false if there is none.
    mutating func step() -> Bool {
        guard let (at, event) = eventQueue.popNext() else { return false }
        now = at
        switch event {
        case .arrive(let message, let from, let to):
            deliver(to, .messageReceived(message, from: ids[from]))
        case .synced(let index): deliver(index, .synced)
        case .tick(let index):
            plannedTicks[index] = .distantFuture
            deliver(index, .ticked)
        }
        return true
    }

    /// Delivers an event to a node's replication.
    private mutating func deliver(_ index: Int, _ event: ReplicationEvent) {
        run(index) { $0.handle(event, now: $1, using: &$2, effects: &$3) }
    }

    /// Applies `event` to a node's replication and performs the effects.
    mutating func run(_ index: Int, _ event: SimulatedReplica.Call) {
        var effects: [InvalidationEffect] = []
        event(&replications[index], now, &dice, &effects)
        for effect in effects {
            switch effect {
            case .write:
                let delay = Int64.random(in: 500_000...5_000_000, using: &dice)
                eventQueue.schedule(.synced(index), at: now + Interval(nanoseconds: delay))
            case .apply(let record, _): load?.applied(record.id, at: now)
            case .receiptsSettled(let number): load?.settled(upTo: number, by: index, at: now)
            case .send(let message, let ids):
                load?.sent(message, to: ids.count, from: index)
                for to in ids.compactMap({ places[$0] }) { send(message, from: index, to: to) }
            default: break
            }
        }
        let next = max(replications[index].nextTick, now) + .milliseconds(1)
        guard next < plannedTicks[index] else { return }
        plannedTicks[index] = next
        eventQueue.schedule(.tick(index), at: next)
    }

    /// Schedules the arrival of a message, with retransmissions, behind those sent before.
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
        eventQueue.schedule(.arrive(message, from: from, to: to), at: at)
    }
}

/// A load of purges at a steady rate.
extension InvalidationPropagation {
    /// The measurements of a load.
    package struct LoadStatistics: Sendable {
        /// The times from the issue of each purge to the last node that applied it, ascending.
        package var untilApplied: [Interval]
        /// The times from the issue of each purge until no confirmation was outstanding, ascending.
        package var untilConfirmed: [Interval]
        /// The frames per second that each node sent while purges were issued.
        package var framesPerSecond: [Double]
        /// The bytes per second that each node sent while purges were issued.
        package var bytesPerSecond: [Double]
    }

    /// The state of a load in progress.
    struct LoadTracker {
        private let nodes: Int
        /// When each purge was issued and how many nodes have yet to apply it, by record id.
        private var open: [RecordID: (issuedAt: Instant, left: Int)] = [:]
        /// The unconfirmed purges of each issuer, in the order of their numbers.
        private var unconfirmed: [[(number: UInt64, issuedAt: Instant)]]
        private(set) var applied: [Interval] = []
        private(set) var confirmed: [Interval] = []
        private(set) var frames: [Int]
        private(set) var bytes: [Int]
        var isCounting = true

        init(nodes: Int) {
            self.nodes = nodes
            unconfirmed = Array(repeating: [], count: nodes)
            frames = Array(repeating: 0, count: nodes)
            bytes = Array(repeating: 0, count: nodes)
        }

        /// Records a purge that the node `index` has issued.
        mutating func issued(_ name: RecordID, by index: Int, at now: Instant) {
            open[name] = (now, nodes - 1)
            unconfirmed[index].append((name.number, now))
        }

        /// Records that one node has applied a purge.
        mutating func applied(_ name: RecordID, at now: Instant) {
            guard let (issuedAt, left) = open[name] else { return }
            open[name] = left > 1 ? (issuedAt, left - 1) : nil
            if left == 1 { applied.append(now - issuedAt) }
        }

        /// Records that the purges of the node `index` are confirmed up to `number`.
        mutating func settled(upTo number: UInt64, by index: Int, at now: Instant) {
            let done = unconfirmed[index].prefix { $0.number <= number }
            confirmed += done.map { now - $0.issuedAt }
            unconfirmed[index].removeFirst(done.count)
        }

        /// Counts the frames and bytes of a message to `count` nodes.
        mutating func sent(_ message: InvalidationMessage, to count: Int, from index: Int) {
            guard isCounting, let said = try? EncodedInvalidationMessage(message) else { return }
            frames[index] += said.frames.count * count
            bytes[index] += said.frames.reduce(0) { $0 + $1.count } * count
        }
    }

    /// Runs a load of purges, once the cluster has run for seven seconds.
    ///
    /// - Parameters:
    ///   - rate: Purges per second.
    ///   - seconds: The duration in seconds.
    ///   - issuers: The number of nodes that issue purges in turn.
    /// - Returns: The measurements; `nil` if a purge was not applied and confirmed by all within
    ///   another minute.
    package mutating func run(rate: Int, seconds: Int, issuers: Int) -> LoadStatistics? {
        play { $0 >= Instant(nanoseconds: 8_000_000_000) }
        let (start, count) = (now, rate * seconds)
        load = LoadTracker(nodes: replications.count)
        for number in 0..<count {
            let dueAt = start + Interval(nanoseconds: Int64(number) * 1_000_000_000 / Int64(rate))
            play { $0 >= dueAt }
            issue(number, at: number % issuers)
        }
        load?.isCounting = false
        let limit = now + .seconds(60)
        while now < limit, load?.applied.count != count || load?.confirmed.count != count {
            guard step() else { break }
        }
        guard let load, load.applied.count == count, load.confirmed.count == count else {
            return nil
        }
        return LoadStatistics(
            untilApplied: load.applied.sorted(), untilConfirmed: load.confirmed.sorted(),
            framesPerSecond: load.frames.map { Double($0) / Double(seconds) },
            bytesPerSecond: load.bytes.map { Double($0) / Double(seconds) })
    }

    /// Issues a hard purge of a URL with the number `number` at a node, and tracks it.
    private mutating func issue(_ number: Int, at index: Int) {
        let url = Array("http://a.example/images/\(number).jpeg".utf8)
        let id = Array("\(number)".utf8)
        let invalidation = Invalidation(id: id, .purge(Purge(.hard, [.url(url)])))
        var issued: RecordID?
        run(index) { issued = $0.issueRecord(invalidation, now: $1, using: &$2, effects: &$3) }
        if let issued { load?.issued(issued, by: index, at: now) }
    }
}
