import Cluster
package import Ground

/// Purges at a steady rate.
extension InvalidationPropagation {
    /// What came of a load.
    package struct LoadStatistics: Sendable {
        /// From the issue of each purge to the last node that applied it, ascending.
        package var untilApplied: [Interval]
        /// From the issue of each to the moment when nobody's word was outstanding, ascending.
        package var untilConfirmed: [Interval]
        /// What each node has sent a second while purges were issued.
        package var framesPerSecond: [Double]
        package var bytesPerSecond: [Double]
    }

    /// What is known of a load that is being played.
    struct LoadTracker {
        private let nodes: Int
        /// By name, when it was issued and how many nodes have yet to apply it.
        private var open: [RecordID: (issuedAt: Instant, left: Int)] = [:]
        /// By issuer, those that are not confirmed, in the order of their numbers.
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

        mutating func issued(_ name: RecordID, by index: Int, at now: Instant) {
            open[name] = (now, nodes - 1)
            unconfirmed[index].append((name.number, now))
        }

        mutating func applied(_ name: RecordID, at now: Instant) {
            guard let (issuedAt, left) = open[name] else { return }
            open[name] = left > 1 ? (issuedAt, left - 1) : nil
            if left == 1 { applied.append(now - issuedAt) }
        }

        mutating func settled(upTo number: UInt64, by index: Int, at now: Instant) {
            let done = unconfirmed[index].prefix { $0.number <= number }
            confirmed += done.map { now - $0.issuedAt }
            unconfirmed[index].removeFirst(done.count)
        }

        mutating func sent(_ message: InvalidationMessage, to count: Int, from index: Int) {
            guard isCounting, let said = try? EncodedInvalidationMessage(message) else { return }
            frames[index] += said.frames.count * count
            bytes[index] += said.frames.reduce(0) { $0 + $1.count } * count
        }
    }

    /// Issues `rate` purges a second for `seconds`, at `issuers` of the nodes in turn; nil if one
    /// did not come to all, and was not confirmed, within a minute more.
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

    private mutating func issue(_ number: Int, at index: Int) {
        let url = Array("http://a.example/images/\(number).jpeg".utf8)
        let id = Array("\(number)".utf8)
        let invalidation = Invalidation(id: id, .purge(Purge(.hard, [.url(url)])))
        var issued: RecordID?
        run(index) { exchange, now, dice, effects in
            let issuance = try? exchange.issue(
                invalidation, now: now, using: &dice, effects: &effects)
            if case .issued(let name) = issuance { issued = name }
        }
        if let issued { load?.issued(issued, by: index, at: now) }
    }
}
