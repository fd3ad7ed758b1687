import Cluster
package import Ground

/// A random sequence of faults from one seed, after which the nodes must form one cluster without
/// help.
package struct MembershipScenario: Sendable {
    /// The result of a run.
    package struct ScenarioReport: Sendable {
        /// The digest of every event, equal for every run of the seed.
        package var digest: UInt64 = 0
        /// The number of events.
        package var events: UInt64 = 0
        /// The time from the end of the faults to one cluster.
        package var recovery = Interval.zero
        /// The number of live, reachable members that were believed dead.
        package var falsePositives = 0
        /// How often each step was chosen; a step that was impossible had no effect.
        package var steps: [ScenarioStep: Int] = [:]
        /// The number of processes that refused to serve.
        package var refused = 0
    }

    /// A step of a scenario.
    package enum ScenarioStep: Int, Hashable, Sendable, CaseIterable {
        case join, kill, powerOff, restart, restartFromCopy, pause, resume, leave
        case split, oneWay, heal, reset, duplicate, roleChange, toggleResolver
    }

    /// Maximum time from the end of the faults to one cluster.
    ///
    /// Covers the longest wait for a dial to a dead member, a dial that hangs, and some rounds of
    /// suspicion.
    package static let recoveryMax = Interval.seconds(120)
    private static let hostsMax = 14

    /// The simulated cluster.
    package private(set) var world: MembershipSimulation
    private var dice: SplitMix64
    private var report = ScenarioReport()
    /// The epoch of the last start of each id.
    private var epochs: [NodeID: UInt64] = [:]
    /// The paused processes, in the order of their pauses.
    private var paused: [Int] = []

    /// Creates the scenario of a seed.
    package init(seed: UInt64) {
        dice = SplitMix64(seed: seed ^ 0x9E37_79B9)
        var conditions = NetworkConditions()
        conditions.loss = [0, 0, 0.01, 0.05][Int.random(in: 0..<4, using: &dice)]
        conditions.delay = .milliseconds(Int64.random(in: 1...30, using: &dice))
        conditions.jitter = .milliseconds(Int64.random(in: 0...60, using: &dice))
        world = MembershipSimulation(seed: seed, conditions: conditions)
    }

    /// Runs to the end.
    ///
    /// - Throws: ``Violation`` as soon as a rule is broken.
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

    /// Performs a random step; a new node joins if no process runs.
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
            let side = (0..<world.network.hosts.count).filter { _ in Bool.random(using: &dice) }
            world.cut(Set(side), isOneWay: act == .oneWay)
        case .heal: world.heal()
        case .reset:
            guard let link = world.network.openLinks.randomElement(using: &dice) else { return }
            try world.reset(link)
        case .duplicate: try startTwin(of: subject)
        case .roleChange: try world.deliver(subject, .roleChanged(.isDraining))
        case .toggleResolver: world.isResolverDown.toggle()
        }
    }

    /// Resumes the process that was paused first, if there is one.
    private mutating func resume() throws {
        guard !paused.isEmpty else { return }
        try world.resume(paused.removeFirst())
    }

    /// Starts a new node on a new host, up to the maximum of hosts; the first three hosts are
    /// seeds.
    private mutating func join() throws {
        guard world.network.hosts.count < Self.hostsMax else { return }
        let host = world.addHost()
        if host < 3 { world.seedHosts.append(host) }
        let process = world.start(host: host, epoch: 5)
        epochs[world.processes[process].id] = 5
    }

    /// Restarts a process that has ended, with its directory or an older copy of it; does nothing
    /// if there is none.
    ///
    /// `epochStep` is added to the epoch of the last start; it is negative for a copy.
    private mutating func restart(epochStep: Int64) throws {
        let gone = world.processes.indices.filter { isRestartable($0) }
        guard let process = gone.randomElement(using: &dice) else { return }
        let id = world.processes[process].id
        guard !world.running.contains(where: { world.processes[$0].id == id }) else { return }
        let last = epochs[id] ?? 5
        let epoch = UInt64(max(1, Int64(last) + epochStep))
        epochs[id] = max(last, epoch)
        _ = world.start(host: world.processes[process].host, id: id, epoch: epoch)
    }

    /// Returns true if the process has ended and its host is free.
    private func isRestartable(_ process: Int) -> Bool {
        let process = world.processes[process]
        return process.state == .ended && world.network.hosts[process.host].process == nil
    }

    /// Starts a copy of a live node's directory on another host.
    private mutating func startTwin(of subject: Int) throws {
        guard world.network.hosts.count < Self.hostsMax else { return }
        let id = world.processes[subject].id
        let epoch = UInt64(Int64(epochs[id] ?? 5) + Int64.random(in: -1...1, using: &dice))
        epochs[id] = max(epochs[id] ?? 5, epoch)
        _ = world.start(host: world.addHost(), id: id, epoch: epoch)
    }

    /// Ends the faults and checks that the running processes become one cluster and stay one.
    private mutating func recover() throws {
        world.heal()
        world.isResolverDown = false
        for process in paused { try world.resume(process) }
        world.seedHosts = Array(0..<world.network.hosts.count)
        let recovery = try world.run(
            until: { $0.isAgreed && $0.disconnectedPair == nil }, limit: Self.recoveryMax)
        guard let recovery else {
            throw world.violation(
                world.disagreement ?? world.disconnectedPair ?? "nothing")
        }
        report.recovery = recovery
        // Dials in progress may still end, and duplicate connections be closed.
        try world.run(for: .seconds(20))
        let connections = world.network.linkCount
        for _ in 0..<60 {
            try world.run(for: .seconds(1))
            guard world.network.conditions.loss == 0 else { continue }
            try world.require(world.isAgreed, world.disagreement ?? "")
        }
        try world.require(
            world.network.linkCount == connections || world.network.conditions.loss > 0,
            "connections are opened at rest")
    }
}
