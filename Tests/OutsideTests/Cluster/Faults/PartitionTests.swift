import Harness
import Testing

extension Outside {
    @Suite(
        "Network partitions",
        .enabled(if: NetworkNamespace.isAvailable, "namespaces need root, iproute2 and nftables"))
    struct PartitionTests {
        private static let all = Array(0..<5)

        private func load(_ network: PeerNetwork) -> SteadyLoad {
            network.origin.serveNumberedImages()
            return SteadyLoad(
                network.nodes, connections: 2, pause: 0.1, origin: network.origin,
                SteadyLoad.mixed(stored: 200, LockedBox(0)))
        }

        /// Expects that every node has served stored and new images since `before`.
        private func expectService(
            _ load: SteadyLoad, since before: [SteadyLoad.Tally],
            at location: SourceLocation = #_sourceLocation
        ) {
            let isServed = load.waitForAnswers(
                20, of: SteadyLoad.kinds, at: Self.all, since: before)
            #expect(isServed, "\(before) \(load.now)", sourceLocation: location)
        }

        @Test(
            "Two and three separated nodes form two clusters, and merge again without intervention"
        )
        func split() throws {
            let network = try PeerNetwork(5)
            let load = load(network)
            expectService(load, since: load.now)
            let before = load.now
            try network.cut([0, 1], from: [2, 3, 4])
            try network.cut([2, 3, 4], from: [0, 1])
            expectService(load, since: before)
            // After this, every suspicion has ended.
            try network.settle([[0, 1], [2, 3, 4]])
            expectService(load, since: load.now)
            try network.heal()
            try network.settle([Self.all])
            expectService(load, since: load.now)
            #expect(load.stop().flatMap(\.failures) == [])
        }

        @Test("A node that one other cannot reach stays a member because the rest can reach it")
        func unheardByOne() throws {
            let network = try PeerNetwork(5)
            let load = load(network)
            let before = load.now
            try network.cut([0], from: [1])
            // Longer than the maximum suspicion period among five nodes, 24 s.
            #expect(
                try Deadline.seconds(30).waitUntilPassed(holding: { try network.burials() == 0 }))
            expectService(load, since: before)
            try network.heal()
            try network.settle([Self.all])
            #expect(load.stop().flatMap(\.failures) == [])
        }

        @Test("A node that no other can reach is excluded, serves on its own, and comes back")
        func unheardByAll() throws {
            let network = try PeerNetwork(5)
            let gets = "nuthatch_peer_questions_total{kind=\"get\"}"
            let load = load(network)
            expectService(load, since: load.now)
            let before = load.now
            try network.cut([4], from: [0, 1, 2, 3])
            let asked = network.nodes[4].metric(gets) ?? 0
            try network.settle([[0, 1, 2, 3]])
            expectService(load, since: before)
            // A node that has failed to reply to one or two queries gets no further ones.
            let more = (network.nodes[4].metric(gets) ?? .infinity) - asked
            #expect(more < 15, "\(more)")
            try network.heal()
            try network.settle([Self.all])
            expectService(load, since: load.now)
            #expect(load.stop().flatMap(\.failures) == [])
        }

        @Test("Five idle nodes send less than a kilobyte per second each")
        func rest() throws {
            let network = try PeerNetwork(5)
            let isAtRest = Deadline.seconds(60).waitUntil {
                network.nodes.allSatisfy { $0.isCurrent(among: 5) }
            }
            try #require(isAtRest)
            let before = try Self.all.map { try network.bytesSent(by: $0) }
            let seconds = 10
            Deadline.seconds(Double(seconds)).waitUntilPassed()
            let after = try Self.all.map { try network.bytesSent(by: $0) }
            let rates = zip(before, after).map { ($1 - $0) / seconds }
            #expect(rates.allSatisfy { (100..<1_024).contains($0) }, "\(rates)")
        }
    }
}
