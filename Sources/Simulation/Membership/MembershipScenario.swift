import Cluster
package import Ground

/// A story of faults that one seed makes up, and its good end: when the faults are over, one
/// cluster again without help.
package struct MembershipScenario: Sendable {
    /// What a run came to.
    package struct ScenarioReport: Sendable {
        /// Of every event; equal for every run of the seed.
        package var digest: UInt64 = 0
        package var events: UInt64 = 0
        /// From the end of the faults to one cluster.
        package var recovery = Interval.zero
        /// Live members that were believed dead though nothing was wrong with them.
        package var falsePositives = 0
        /// How often each act was played.
        package var steps: [ScenarioStep: Int] = [:]
        package var refused = 0
    }

    /// What can happen to a cluster.
    package enum ScenarioStep: Int, Hashable, Sendable, CaseIterable {
        case join, kill, powerOff, restart, restartFromCopy, pause, resume, leave
        case split, oneWay, heal, reset, duplicate, roleChange, toggleResolver
    }

    /// After the faults it may take so long to one cluster: the longest wait for a dead member's
    /// dial, a dial that hangs, and some rounds of suspicion.
    package static let recoveryMax = Interval.seconds(120)
    private static let hostsMax = 14

    package private(set) var world: MembershipSimulation
    private var dice: SplitMix64
    private var report = ScenarioReport()
    /// Ids whose process has gone, and the epoch of its last start.
    private var epochs: [NodeID: UInt64] = [:]
    private var paused: [Int] = []

    package init(seed: UInt64) {
        dice = SplitMix64(seed: seed ^ 0x9E37_79B9)
        var conditions = MembershipSimulation.Conditions()
        conditions.loss = [0, 0, 0.01, 0.05][Int.random(in: 0..<4, using: &dice)]
        conditions.delay = .milliseconds(Int64.random(in: 1...30, using: &dice))
        conditions.jitter = .milliseconds(Int64.random(in: 0...60, using: &dice))
        world = MembershipSimulation(seed: seed, conditions: conditions)
    }

    /// Plays it to the end.
    ///
    /// - Throws: ``Violation`` as soon as a law does not hold.
    package mutating func run() throws -> ScenarioReport {
        for _ in 0..<Int.random(in: 2...7, using: &dice) { try join() }
        for _ in 0..<Int.random(in: 8...24, using: &dice) {
            try world.run(for: .milliseconds(Int64.random(in: 50...15_000, using: &dice)))
            try performStep()
        }
        try recover()
        report.digest = world.digest
        report.events = world.eventCount
        report.falsePositives = world.falsePositives
        report.refused = world.processes.count { $0.state == .refusedToServe }
        return report
    }

    private mutating func performStep() throws {
        guard let act = ScenarioStep.allCases.randomElement(using: &dice) else { return }
        let running = world.running
        guard let subject = running.randomElement(using: &dice) else { return try join() }
        report.steps[act, default: 0] += 1
        switch act {
        case .join: try join()
        case .kill: world.kill(subject)
        case .powerOff: world.powerOff(subject)
        case .restart: try restart(epochStep: 1)
        case .restartFromCopy: try restart(epochStep: -1)
        case .pause:
            world.pause(subject)
            paused.append(subject)
        case .resume: try resume()
        case .leave where running.count > 2: try world.leave(subject)
        case .leave: break
        case .split, .oneWay:
            let side = (0..<world.hostCount).filter { _ in Bool.random(using: &dice) }
            world.cut(Set(side), isOneWay: act == .oneWay)
        case .heal: world.heal()
        case .reset:
            guard let link = world.openLinks.randomElement(using: &dice) else { return }
            try world.reset(link)
        case .duplicate: try startTwin(of: subject)
        case .roleChange: try world.changeRole(subject, .isDraining)
        case .toggleResolver: world.isResolverDown.toggle()
        }
    }

    private mutating func resume() throws {
        guard !paused.isEmpty else { return }
        try world.resume(paused.removeFirst())
    }

    private mutating func join() throws {
        guard world.hostCount < Self.hostsMax else { return }
        let host = world.addHost()
        if host < 3 { world.seedHosts.append(host) }
        let process = try world.start(host: host, epoch: 5)
        epochs[world.processes[process].id] = 5
    }

    /// A process that is gone comes again, with its directory or an older copy of it.
    private mutating func restart(epochStep: Int64) throws {
        let gone = world.processes.indices.filter { world.isRestartable($0) }
        guard let process = gone.randomElement(using: &dice) else { return }
        let id = world.processes[process].id
        guard !world.running.contains(where: { world.processes[$0].id == id }) else { return }
        let last = epochs[id] ?? 5
        let epoch = UInt64(max(1, Int64(last) + epochStep))
        epochs[id] = max(last, epoch)
        _ = try world.start(host: world.processes[process].host, id: id, epoch: epoch)
    }

    /// Somebody starts a copy of a live node's directory elsewhere.
    private mutating func startTwin(of subject: Int) throws {
        guard world.hostCount < Self.hostsMax else { return }
        let id = world.processes[subject].id
        let epoch = UInt64(Int64(epochs[id] ?? 5) + Int64.random(in: -1...1, using: &dice))
        epochs[id] = max(epochs[id] ?? 5, epoch)
        _ = try world.start(host: world.addHost(), id: id, epoch: epoch)
    }

    /// The faults end; what runs becomes one cluster, and stays one.
    private mutating func recover() throws {
        world.heal()
        world.isResolverDown = false
        for process in paused { try world.resume(process) }
        world.seedHosts = Array(0..<world.hostCount)
        let recovery = try world.run(
            until: { $0.isAgreed && $0.disconnectedPair == nil }, limit: Self.recoveryMax)
        guard let recovery else {
            throw world.violation(
                world.disagreement ?? world.disconnectedPair ?? "nothing")
        }
        report.recovery = recovery
        // Dials that were under way may still end, and duplicates be closed.
        try world.run(for: .seconds(20))
        let connections = world.linkCount
        for _ in 0..<60 {
            try world.run(for: .seconds(1))
            guard world.conditions.loss == 0 else { continue }
            try world.require(world.isAgreed, world.disagreement ?? "")
        }
        try world.require(
            world.linkCount == connections || world.conditions.loss > 0,
            "connections are opened at rest")
    }
}

extension MembershipSimulation {
    package var hostCount: Int { hosts.count }
    /// Connections there have ever been between two processes.
    package var linkCount: Int {
        links.count { $0.ends[0].process != $0.ends[1].process }
    }

    /// True if the process is gone and its host is free.
    func isRestartable(_ process: Int) -> Bool {
        processes[process].state == .ended && hosts[processes[process].host].process == nil
    }
}
