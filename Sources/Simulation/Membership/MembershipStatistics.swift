package import Ground

/// How fast and how dear membership is in a cluster of some size on a network of some quality.
package struct MembershipStatistics: Sendable {
    package let nodes: Int
    /// Of packets that have to be sent again, 0 to 1.
    package let loss: Double
    /// From the last start, about 2 s after the first, to one cluster with a whole mesh.
    package private(set) var coldStart = Interval.zero
    /// From a node's end until somebody believes it dead: killed, and gone with its machine.
    package private(set) var killDetections: [Interval] = []
    package private(set) var powerDetections: [Interval] = []
    /// From a node's end until nobody believes it alive, either way.
    package private(set) var crashes: [Interval] = []
    /// From a start until everybody believes it.
    package private(set) var joins: [Interval] = []
    /// From the request to leave until nobody believes that it stays.
    package private(set) var leaves: [Interval] = []
    package private(set) var falsePositives = 0
    package private(set) var nodeHours = 0.0
    /// Bytes sent per node and second.
    package private(set) var restRate = 0.0
    package private(set) var churnRate = 0.0

    /// What did not come about within this.
    private static let limit = Interval.seconds(180)

    /// One cluster's life: a cold start, rest, and `rounds` of a crash, a restart, a leave and
    /// another restart, 10 s apart.
    ///
    /// - Throws: ``Violation``, also for what does not come about within 3 minutes.
    package init(nodes: Int, loss: Double, rounds: Int, seed: UInt64) throws {
        self.nodes = nodes
        self.loss = loss
        var conditions = MembershipSimulation.Conditions()
        conditions.loss = loss
        var world = MembershipSimulation(seed: seed, conditions: conditions)
        var starts = SplitMix64(seed: seed)
        for host in 0..<nodes {
            precondition(world.addHost() == host)
            if host < 3 { world.seedHosts.append(host) }
            let pause = Int64.random(in: 0..<(4_000 / Int64(nodes)), using: &starts)
            try world.run(for: .milliseconds(pause))
            _ = try world.start(host: host)
        }
        coldStart = try Self.wait(
            &world, "a cold start", pace: .milliseconds(100),
            until: { $0.isAgreed && $0.disconnectedPair == nil })
        try world.run(for: .seconds(240))
        restRate = try rate(&world) { try $0.run(for: .seconds(120)) }
        churnRate = try rate(&world) { world in
            for round in 0..<rounds { try churn(&world, round, &starts) }
        }
        falsePositives = world.falsePositives
        let seconds = Double((world.now - .zero).milliseconds) / 1_000
        nodeHours = Double(nodes) * seconds / 3_600
    }

    private func rate(
        _ world: inout MembershipSimulation, _ life: (inout MembershipSimulation) throws -> Void
    ) throws -> Double {
        let (start, before) = (world.now, world.bytesSent)
        try life(&world)
        let seconds = Double((world.now - start).milliseconds) / 1_000
        return Double(world.bytesSent - before) / seconds / Double(nodes)
    }

    private mutating func churn(
        _ world: inout MembershipSimulation, _ round: Int, _ dice: inout SplitMix64
    ) throws {
        let epoch = UInt64(2 * round + 2)
        let isPowerLoss = round % 2 == 1
        let victim = try Self.pick(world, &dice)
        let start = world.now
        if isPowerLoss { world.powerOff(victim) } else { world.kill(victim) }
        let crash = try Self.wait(&world, "a crash") { $0.isKnownGone(victim) }
        crashes.append(crash)
        if let first = world.deathReports.first(where: { $0.of == victim }) {
            if isPowerLoss {
                powerDetections.append(first.at - start)
            } else {
                killDetections.append(first.at - start)
            }
        }
        try join(&world, asAfter: victim, epoch: epoch)
        let leaver = try Self.pick(world, &dice)
        try world.leave(leaver)
        leaves.append(try Self.wait(&world, "a leave") { $0.isKnownGone(leaver) })
        try world.run(for: .seconds(10))
        try join(&world, asAfter: leaver, epoch: epoch + 1)
    }

    private mutating func join(
        _ world: inout MembershipSimulation, asAfter gone: Int, epoch: UInt64
    ) throws {
        let (host, id) = (world.processes[gone].host, world.processes[gone].id)
        let joiner = try world.start(host: host, id: id, epoch: epoch)
        joins.append(try Self.wait(&world, "a join") { $0.isKnownAlive(joiner) })
        try world.run(for: .seconds(10))
    }

    /// Not one of the seeds, so that a join always finds some.
    private static func pick(_ world: MembershipSimulation, _ dice: inout SplitMix64) throws -> Int
    {
        let candidates = world.running.filter {
            !world.seedHosts.contains(world.processes[$0].host)
        }
        guard let chosen = candidates.randomElement(using: &dice) else {
            throw world.violation("nobody is left")
        }
        return chosen
    }

    private static func wait(
        _ world: inout MembershipSimulation, _ what: String, pace: Interval = .milliseconds(10),
        until isReached: (MembershipSimulation) -> Bool
    ) throws -> Interval {
        guard let time = try world.run(until: isReached, pace: pace, limit: limit) else {
            throw world.violation("\(what) did not become known: \(world.disagreement ?? "")")
        }
        return time
    }
}

extension [Interval] {
    /// The middle one, and zero of none.
    package var median: Interval { isEmpty ? .zero : sorted()[count / 2] }
}

/// One line for each cluster; times in milliseconds, the middle one and the most.
extension MembershipStatistics {
    private static let columns: [(title: String, width: Int)] = [
        ("nodes", 6), ("loss %", 7), ("cold start", 11), ("killed", 13), ("power lost", 14),
        ("crash known", 14), ("join known", 12), ("leave known", 12), ("false/node-h", 13),
        ("B/s at rest", 12), ("B/s in churn", 12),
    ]

    package static var head: String {
        line(columns.map(\.title))
    }

    package var row: String {
        Self.line([
            String(nodes), Self.tenths(loss * 100), String(coldStart.milliseconds),
            Self.pair(killDetections), Self.pair(powerDetections), Self.pair(crashes),
            Self.pair(joins), Self.pair(leaves), Self.tenths(Double(falsePositives) / nodeHours),
            Self.tenths(restRate), Self.tenths(churnRate),
        ])
    }

    private static func line(_ cells: [String]) -> String {
        zip(cells, columns).map { cell, column in
            String(repeating: " ", count: max(0, column.width - cell.count)) + cell
        }.joined(separator: " ")
    }

    private static func pair(_ times: [Interval]) -> String {
        "\(times.median.milliseconds)/\((times.max() ?? .zero).milliseconds)"
    }

    /// One digit after the point.
    private static func tenths(_ value: Double) -> String {
        let scaled = Int(value * 10 + 0.5)
        return "\(scaled / 10).\(scaled % 10)"
    }
}
