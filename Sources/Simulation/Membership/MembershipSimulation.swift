package import Cluster
package import Ground

/// A seeded simulation of hosts, connections and processes that run ``Cluster/Membership``.
///
/// Checks the invariants of membership at every step.
package struct MembershipSimulation: Sendable {
    /// A future event; unlabelled numbers are process indices.
    enum Event: Sendable {
        case tick(Int)
        case arrive(from: LinkEnd)
        case dialArrives(process: Int, PeerAddress, deadline: Instant)
        case dialFails(process: Int, PeerAddress)
        case helloDue(link: Int)
        case resolve(Int)
    }

    /// The simulated time.
    package internal(set) var now = Instant(nanoseconds: 1_000_000_000)
    /// The hosts and connections.
    package internal(set) var network: MembershipNetwork
    /// All processes, in the order of their starts.
    package internal(set) var processes: [SimulatedProcess] = []
    var dice: SplitMix64
    var eventQueue = EventQueue<Event>()
    var trace = TraceDigest()
    private var history: RunHistory
    /// The hosts whose addresses every node has as seeds.
    package var seedHosts: [Int] = []
    /// True if name resolution fails.
    package var isResolverDown = false
    /// The number of live, reachable members that were believed dead.
    package internal(set) var falsePositives = 0
    /// How often a process closed as redundant the only connection that both ends had.
    package internal(set) var unwantedDisconnects = 0
    /// All death reports, in the order of occurrence.
    package internal(set) var deathReports: [DeathReport] = []
    let settings: MembershipSettings

    /// Creates a simulation without hosts.
    package init(
        seed: UInt64, conditions: NetworkConditions = NetworkConditions(),
        settings: MembershipSettings = MembershipSettings()
    ) {
        network = MembershipNetwork(conditions)
        self.settings = settings
        dice = SplitMix64(seed: seed)
        history = RunHistory(seed: seed, showing: 60)
    }

    /// The digest of all events.
    package var digest: UInt64 { trace.value }
    /// The number of events.
    package var eventCount: UInt64 { trace.events }

    /// The running processes, in the order of their starts.
    package var running: [Int] { processes.indices.filter { processes[$0].isRunning } }

    // MARK: Time

    /// Advances time by `interval`.
    ///
    /// - Throws: ``Violation`` as soon as a rule is broken.
    package mutating func run(for interval: Interval) throws {
        let end = now + interval
        while let next = eventQueue.next, next <= end { try step() }
        now = end
    }

    /// Advances time until `isReached` holds or `limit` has passed.
    ///
    /// - Parameters:
    ///   - isReached: The condition, evaluated every `pace`.
    ///   - pace: The interval between evaluations.
    ///   - limit: Maximum time.
    /// - Returns: The time that it took; `nil` if the limit was reached first.
    /// - Throws: ``Violation`` as soon as a rule is broken.
    package mutating func run(
        until isReached: (MembershipSimulation) -> Bool, pace: Interval = .milliseconds(50),
        limit: Interval
    ) throws -> Interval? {
        let start = now
        while now - start <= limit {
            if isReached(self) { return now - start }
            try run(for: pace)
        }
        return nil
    }

    /// Handles the next event, if there is one.
    private mutating func step() throws {
        guard let (instant, event) = eventQueue.popNext() else { return }
        now = instant
        switch event {
        case .tick(let process):
            guard processes[process].plannedTick == instant else { return }
            processes[process].plannedTick = .distantFuture
            guard processes[process].isRunning else { return }
            try deliver(process, .ticked)
        case .arrive(let end): try arrive(from: end)
        case .dialArrives(let process, let address, let deadline):
            dialArrives(process, address, deadline: deadline)
        case .dialFails(let process, let address): try dialFails(process, address)
        case .helloDue(let link): try helloDue(link)
        case .resolve(let process): try resolve(process)
        }
    }

    /// Reports the addresses of the seeds to a process, unless the resolver is down, and schedules
    /// the next resolution.
    private mutating func resolve(_ process: Int) throws {
        guard !processes[process].hasEnded else { return }
        eventQueue.schedule(.resolve(process), at: now + settings.resolveInterval)
        guard !isResolverDown else { return }
        try deliver(process, .seedsResolved(seedHosts.map { network.hosts[$0].address }))
    }

    // MARK: Processes

    /// Delivers an event to a process, or queues it until the process resumes; an event for a
    /// process that has ended is dropped.
    mutating func deliver(_ process: Int, _ event: MembershipEvent) throws {
        switch processes[process].state {
        case .ended, .refusedToServe: return
        case .paused: processes[process].inbox.append(event)
        case .running:
            trace.add(event, process: process, at: now)
            var effects: [MembershipEffect] = []
            var dice = processes[process].dice
            processes[process].membership.handle(
                event, now: now, using: &dice, effects: &effects)
            processes[process].dice = dice
            for effect in effects { try perform(effect, of: process) }
            planTick(process)
        }
    }

    /// Schedules the next tick of a process, unless an earlier one is scheduled.
    mutating func planTick(_ process: Int) {
        let wanted = max(processes[process].membership.nextTick, now)
        guard wanted < processes[process].plannedTick, processes[process].isRunning else { return }
        // Timers of an event loop are a little late.
        let late = Interval(nanoseconds: Int64.random(in: 1..<1_000_000, using: &dice))
        let instant = wanted + late
        guard instant < processes[process].plannedTick else { return }
        processes[process].plannedTick = instant
        eventQueue.schedule(.tick(process), at: instant)
    }

    /// Performs an effect of a process, and checks that it was permitted.
    private mutating func perform(_ effect: MembershipEffect, of process: Int) throws {
        switch effect {
        case .dial(let address):
            try require(
                processes[process].dialling.insert(address).inserted,
                "\(name(process)) dials \(address) twice at once")
            dial(address, from: process)
        case .close(let id, let reason):
            let end = try openEnd(id, of: process)
            let other = name(network[end.opposite].process)
            log("\(name(process)) closes \(id) to \(other): \(reason)")
            drop(end, sending: .goodbye(reason))
            if reason == .redundant, !network.hasOther(end.link) { unwantedDisconnects += 1 }
        case .send(let message, let id):
            let end = try openEnd(id, of: process)
            trace.add(message)
            processes[process].bytesSent += message.wireBytes
            send(.gossip(message), from: end)
        case .useConnection(let member, let id):
            _ = try openEnd(id, of: process)
            processes[process].connectionsInUse[member] = id
        case .dropConnection(let member):
            try require(
                processes[process].connectionsInUse.removeValue(forKey: member) != nil,
                "\(name(process)) drops a connection that it has not")
        case .memberChanged(let record, let before): try checkChange(record, before, by: process)
        case .forget(let record): processes[process].reportedRecords[record.member.id] = nil
        case .refuseMember(let member): log("\(name(process)) refuses member \(member.id)")
        case .refuseToServe(let why):
            log("\(name(process)) refuses to serve: it is a \(why)")
            end(process, .refusedToServe)
        case .finishLeaving(let untold):
            log("\(name(process)) has left, \(untold.count) untold")
            end(process, .ended)
        }
    }

    /// Returns the end of a connection that the process has; using any other is a violation.
    private func openEnd(_ id: ConnectionID, of process: Int) throws -> LinkEnd {
        guard let end = processes[process].links[id] else {
            throw violation("\(name(process)) uses \(id), which it has not")
        }
        return end
    }

    // MARK: Log and violations

    /// Appends a line to the history.
    mutating func log(_ line: String) {
        history.append("\(now.nanoseconds / 1_000_000) ms: \(line)")
    }

    /// Returns the name of a process in the history.
    func name(_ process: Int) -> String {
        "process \(process) of host \(processes[process].host)"
    }

    /// Throws a ``Violation`` of `law` unless `holds`.
    func require(_ holds: Bool, _ law: @autoclosure () -> String) throws {
        guard !holds else { return }
        throw violation(law())
    }

    /// Returns a violation with the latest history.
    func violation(_ law: String) -> Violation {
        history.violation("\(law) at \(now.nanoseconds / 1_000_000) ms")
    }
}
