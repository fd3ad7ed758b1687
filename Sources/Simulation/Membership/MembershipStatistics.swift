package import Ground

/// Measurements of the latency and cost of membership, for one cluster size and packet loss.
package struct MembershipStatistics: Sendable {
    /// The number of nodes.
    package let nodes: Int
    /// The share of packets that have to be retransmitted, from 0 to 1.
    package let loss: Double
    /// The time from the last start, about 2 s after the first, to one cluster with a full mesh.
    package private(set) var coldStart = Interval.zero
    /// The times from the kill of a process until the first node marks it as dead.
    package private(set) var killDetections: [Interval] = []
    /// The times from the loss of a host until the first node marks its process as dead.
    package private(set) var powerDetections: [Interval] = []
    /// The times from the end of a process, of either kind, until no node believes it live.
    package private(set) var crashes: [Interval] = []
    /// The times from a start until all nodes have the process's record.
    package private(set) var joins: [Interval] = []
    /// The times from the request to leave until no node believes the process live.
    package private(set) var leaves: [Interval] = []
    /// The number of live, reachable members that were believed dead.
    package private(set) var falsePositives = 0
    /// The simulated time multiplied by the number of nodes, in hours.
    package private(set) var nodeHours = 0.0
    /// The bytes sent per node and second without changes.
    package private(set) var restRate = 0.0
    /// The bytes sent per node and second while nodes crash, leave and restart.
    package private(set) var churnRate = 0.0

    /// The time after which an awaited situation counts as missed.
    private static let limit = Interval.seconds(180)

    /// Measures one cluster: a cold start, a time without changes, and `rounds` of changes.
    ///
    /// Each round is a crash, a restart, a leave and another restart, 10 s apart.
    ///
    /// - Throws: ``Violation``, also for what is not reached within 3 minutes.
    package init(nodes: Int, loss: Double, rounds: Int, seed: UInt64) throws {
        self.nodes = nodes
        self.loss = loss
        var conditions = NetworkConditions()
        conditions.loss = loss
        var world = MembershipSimulation(seed: seed, conditions: conditions)
        var starts = SplitMix64(seed: seed)
        for host in 0..<nodes {
            precondition(world.addHost() == host)
            if host < 3 { world.seedHosts.append(host) }
            let pause = Int64.random(in: 0..<(4_000 / Int64(nodes)), using: &starts)
            try world.run(for: .milliseconds(pause))
            _ = world.start(host: host)
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

    /// Returns the bytes sent per node and second during `life`.
    private func rate(
        _ world: inout MembershipSimulation, _ life: (inout MembershipSimulation) throws -> Void
    ) throws -> Double {
        let (start, before) = (world.now, world.bytesSent)
        try life(&world)
        let seconds = Double((world.now - start).milliseconds) / 1_000
        return Double(world.bytesSent - before) / seconds / Double(nodes)
    }

    /// Performs and measures one round of changes.
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

    /// Restarts the node of a process that has ended, and waits until all nodes know.
    private mutating func join(
        _ world: inout MembershipSimulation, asAfter gone: Int, epoch: UInt64
    ) throws {
        let (host, id) = (world.processes[gone].host, world.processes[gone].id)
        let joiner = world.start(host: host, id: id, epoch: epoch)
        joins.append(try Self.wait(&world, "a join") { $0.isKnownAlive(joiner) })
        try world.run(for: .seconds(10))
    }

    /// Returns a random process that is not a seed, so that a join always finds seeds.
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

    /// Returns the time until `isReached` holds; a violation if it does not within the limit.
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
    /// The median, the greater of the two middle elements if their number is even; zero if there
    /// are no elements.
    package var median: Interval { isEmpty ? .zero : sorted()[count / 2] }
}
