import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A cluster under load")
    struct ClusterLoadTests {
        private static let storedCount = 400

        @Test("Ten thousand images requested by Zipf's law at all nodes are fetched once each")
        func zipf() throws {
            let stage = try ClusterStage(5)
            stage.origin.serveNumberedImages()
            let zipf = Zipf(count: 10_000)
            let left = LockedBox((requests: 30_000, seed: UInt64(800), asked: Set<Int>()))
            let load = SteadyLoad(
                stage.nodes, connections: 2, pause: 0, origin: stage.origin
            ) { _ in
                left.change { left in
                    guard left.requests > 0 else { return nil }
                    left.requests -= 1
                    let number = zipf.draw(&left.seed)
                    left.asked.insert(number)
                    return (number, "any")
                }
            }
            #expect(load.waitForEnd())
            let tallies = load.stop()
            #expect(tallies.reduce(0) { $0 + $1.count } == 30_000)
            #expect(tallies.flatMap(\.failures) == [])
            #expect(tallies.allSatisfy { $0.count > 1_000 }, "\(tallies.map(\.count))")
            let (fetches, asked) = (stage.origin.numberedFetches(), left.value.asked)
            #expect(asked.count > 4_000 && Set(fetches.keys) == asked)
            let twice = fetches.filter { $0.value > 1 }
            #expect(twice.isEmpty, "\(twice)")
        }

        /// Stores images through the nodes.
        private func store(_ stage: ClusterStage) throws {
            stage.origin.serveNumberedImages()
            let toStore = LockedBox(Self.storedCount)
            let filling = SteadyLoad(
                stage.nodes, connections: 1, pause: 0, origin: stage.origin
            ) { _ in
                toStore.change { left in
                    left -= 1
                    return left >= 0 ? (left, SteadyLoad.kinds[0]) : nil
                }
            }
            try #require(filling.waitForEnd())
            #expect(filling.stop().reduce(0) { $0 + $1.count } == Self.storedCount)
            // The second owner of each image has also confirmed it.
            let isHandedOver = Deadline.seconds(60).waitUntil {
                let kept = stage.nodes.reduce(0) { sum, node in
                    sum + (node.metric("nuthatch_offers_total{outcome=\"kept\"}") ?? 0)
                }
                return kept >= Double(Self.storedCount)
                    && stage.nodes.allSatisfy { $0.offersPending == 0 }
            }
            try #require(isHandedOver)
        }

        private func begin(
            _ stage: ClusterStage, _ nodes: [NodeProcess], _ count: LockedBox<Int>
        ) -> SteadyLoad {
            SteadyLoad(
                nodes, connections: 2, pause: 0.01, origin: stage.origin,
                SteadyLoad.mixed(stored: Self.storedCount, count))
        }

        /// Returns the maximum number of fetches of one image, among stored and among new images.
        private func mostFetches(_ stage: ClusterStage) -> (stored: Int, new: Int) {
            let fetches = stage.origin.numberedFetches()
            let most = { (isNew: Bool) in
                fetches.filter { ($0.key >= NumberedImages.newStart) == isNew }.values.max() ?? 0
            }
            return (most(false), most(true))
        }

        @Test("A node killed under load fails only the requests of its own clients")
        func death() throws {
            let stage = try ClusterStage(5)
            try store(stage)
            let load = begin(stage, stage.nodes, LockedBox(0))
            let kinds = SteadyLoad.kinds
            #expect(load.waitForAnswers(100, of: kinds, at: Array(0..<5), since: load.now))
            let before = load.now
            stage.nodes[4].kill()
            #expect(load.waitForAnswers(100, of: kinds, at: Array(0..<4), since: before))
            // Until the other nodes have removed it, and some time more.
            try stage.settle(Array(stage.nodes.prefix(4)))
            #expect(load.waitForAnswers(100, of: kinds, at: Array(0..<4), since: load.now))
            let tallies = load.stop()
            #expect(tallies.prefix(4).flatMap(\.failures) == [])
            // At most one failure on each of its connections.
            #expect(tallies[4].failures.count <= 2, "\(tallies[4].failures)")
            // Images confirmed by two nodes are not fetched again; a new image may be, once.
            let most = mostFetches(stage)
            #expect(most.stored == 1 && most.new <= 2, "\(most)")
        }

        @Test("A node that joins under load causes no new fetch of a stored image")
        func join() throws {
            let stage = try ClusterStage(4)
            try store(stage)
            let count = LockedBox(0)
            let load = begin(stage, stage.nodes, count)
            let kinds = SteadyLoad.kinds
            #expect(load.waitForAnswers(100, of: kinds, at: Array(0..<4), since: load.now))
            let port = try ReservedPort.forProcess()
            let joined = try NodeProcess(
                stage.clusterFlags(peerPort: port) + ["--cache-dir", stage.cache(4).path])
            defer { joined.kill() }
            let before = load.now
            let second = begin(stage, [joined], count)
            let start = second.now
            #expect(second.waitForAnswers(300, of: kinds, at: [0], since: start))
            #expect(load.waitForAnswers(100, of: kinds, at: Array(0..<4), since: before))
            let tallies = load.stop() + second.stop()
            #expect(tallies.flatMap(\.failures) == [])
            let most = mostFetches(stage)
            // On a busy machine a probe may return too late, which is counted.
            let late = try (stage.nodes + [joined]).map {
                try #require($0.metric("nuthatch_peer_probes_late_total"))
            }
            #expect(most.stored <= (late.contains { $0 > 0 } ? 2 : 1) && most.new <= 2, "\(most)")
            let members = try ClusterStage.members(of: joined)
            #expect(members.first { $0.isSelf }.map { $0.share > 0.1 } == true, "\(members)")
        }
    }
}

/// A Zipf distribution: number `n` has a probability proportional to 1/(n + 1).
private struct Zipf: Sendable {
    /// The cumulative probability of each number.
    private let sums: [Double]

    init(count: Int) {
        var sums: [Double] = []
        for rank in 1...count { sums.append((sums.last ?? 0) + 1 / Double(rank)) }
        let all = sums.last ?? 1
        self.sums = sums.map { $0 / all }
    }

    func draw(_ seed: inout UInt64) -> Int {
        // A linear congruential generator, whose high bits are good (Knuth's MMIX).
        seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let part = Double(seed >> 11) / Double(1 << 53 as UInt64)
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] < part { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
