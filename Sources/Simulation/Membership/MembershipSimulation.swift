package import Cluster
package import Ground

/// A seeded simulation of hosts, connections and processes that run ``Cluster/Membership``.
///
/// Checks the invariants of membership at every step.
package struct MembershipSimulation: Sendable {
    /// The quality of the network.
    package struct Conditions: Hashable, Sendable {
        /// The share of packets that have to be retransmitted, from 0 to 1.
        package var loss = 0.0
        /// The minimum one-way delay.
        package var delay = Interval.milliseconds(1)
        /// The maximum that is randomly added to the delay.
        package var jitter = Interval.milliseconds(1)

        /// Creates the conditions of a good network.
        package init() {}
    }

    /// A machine with an address, on which at most one process runs.
    struct Host: Sendable {
        let address: PeerAddress
        var isUp = true
        /// The process that listens on the host.
        var process: Int?
    }

    /// A block of traffic from some hosts to others, and back unless it is one-way.
    struct Partition: Sendable {
        let hosts: Set<Int>
        /// The other hosts; `nil` for all.
        var from: Set<Int>?
        let isOneWay: Bool
    }

    /// A future event; unlabelled numbers are process indices.
    enum Event: Sendable {
        case tick(Int)
        case arrive(link: Int, flow: Int)
        case dialArrives(process: Int, PeerAddress, deadline: Instant)
        case dialFails(process: Int, PeerAddress)
        case helloDue(link: Int)
        case resolve(Int)
    }

    /// The seed of all randomness.
    package let seed: UInt64
    /// The simulated time.
    package internal(set) var now = Instant(nanoseconds: 1_000_000_000)
    /// The quality of the network.
    package internal(set) var conditions: Conditions
    /// All processes, in the order of their starts.
    package internal(set) var processes: [SimulatedProcess] = []
    var dice: SplitMix64
    var eventQueue = EventQueue<Event>()
    var hosts: [Host] = []
    var links: [SimulatedLink] = []
    var partitions: [Partition] = []
    var trace = TraceDigest()
    var history: [String] = []
    /// The hosts whose addresses every node has as seeds.
    package var seedHosts: [Int] = []
    /// True if name resolution fails.
    package var isResolverDown = false
    /// The number of live, reachable members that were believed dead.
    package internal(set) var falsePositives = 0
    /// How often a process closed as redundant the only connection that both ends had.
    package internal(set) var unwantedDisconnects = 0
    /// One process has marked another as dead.
    package struct DeathReport: Hashable, Sendable {
        /// The process that was marked as dead.
        package let of: Int
        /// The process that marked it.
        package let by: Int
        /// The time.
        package let at: Instant
    }

    /// All death reports, in the order of occurrence.
    package internal(set) var deathReports: [DeathReport] = []
    let settings: MembershipSettings

    /// Creates a simulation without hosts.
    package init(
        seed: UInt64, conditions: Conditions = Conditions(),
        settings: MembershipSettings = MembershipSettings()
    ) {
        self.seed = seed
        self.conditions = conditions
        self.settings = settings
        dice = SplitMix64(seed: seed)
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

    /// Advances time until `isReached` holds, but not past `limit`.
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

    private mutating func step() throws {
        guard let (instant, event) = eventQueue.popNext() else { return }
        now = instant
        switch event {
        case .tick(let process):
            guard processes[process].plannedTick == instant else { return }
            processes[process].plannedTick = .distantFuture
            guard processes[process].isRunning else { return }
            try deliver(process, .ticked)
        case .arrive(let link, let flow): try arrive(link, flow)
        case .dialArrives(let process, let address, let deadline):
            dialArrives(process, address, deadline: deadline)
        case .dialFails(let process, let address): try dialFails(process, address)
        case .helloDue(let link): try helloDue(link)
        case .resolve(let process): try resolve(process)
        }
    }

    private mutating func resolve(_ process: Int) throws {
        guard processes[process].state == .running || processes[process].state == .paused else {
            return
        }
        eventQueue.schedule(.resolve(process), at: now + settings.resolveInterval)
        guard !isResolverDown else { return }
        try deliver(process, .seedsResolved(seedHosts.map { hosts[$0].address }))
    }

    // MARK: Processes

    /// Delivers an event to a process, or queues it until the process resumes.
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

    private mutating func perform(_ effect: MembershipEffect, of process: Int) throws {
        switch effect {
        case .dial(let address):
            try require(
                processes[process].dialling.insert(address).inserted,
                "\(name(process)) dials \(address) twice at once")
            dial(address, from: process)
        case .close(let id, let reason):
            guard let place = processes[process].links[id] else {
                throw violation("\(name(process)) closes \(id), which it has not")
            }
            log("\(name(process)) closes \(id) to \(other(place)): \(reason)")
            send(.goodbye(reason), link: place.link, flow: place.end)
            drop(place.link, end: place.end)
            if reason == .redundant, !hasOther(place.link) { unwantedDisconnects += 1 }
        case .send(let message, let id):
            guard let place = processes[process].links[id] else {
                throw violation("\(name(process)) speaks on \(id), which it has not")
            }
            trace.add(message)
            processes[process].bytesSent += message.wireBytes
            send(.gossip(message), link: place.link, flow: place.end)
        case .useConnection(let member, let id):
            try require(
                processes[process].links[id] != nil,
                "\(name(process)) uses \(id), which it has not")
            processes[process].connectionsInUse[member] = id
        case .dropConnection(let member):
            try require(
                processes[process].connectionsInUse[member] != nil,
                "\(name(process)) drops a connection that it has not")
            processes[process].connectionsInUse[member] = nil
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

    // MARK: Log and violations

    /// Appends a line to the history.
    mutating func log(_ line: String) {
        if history.count > 4_000 { history.removeFirst(2_000) }
        history.append("\(now.nanoseconds / 1_000_000) ms: \(line)")
    }

    /// Returns the name of a process in the history.
    func name(_ process: Int) -> String {
        "process \(process) of host \(processes[process].host)"
    }

    private func other(_ place: (link: Int, end: Int)) -> String {
        name(links[place.link].ends[1 - place.end].process)
    }

    /// Throws a ``Violation`` of `law` unless `holds`.
    func require(_ holds: Bool, _ law: @autoclosure () -> String) throws {
        guard !holds else { return }
        throw violation(law())
    }

    /// Returns a violation with the latest history.
    func violation(_ law: String) -> Violation {
        Violation(
            seed: seed, law: "\(law) at \(now.nanoseconds / 1_000_000) ms",
            history: history.suffix(60))
    }
}

extension TraceDigest {
    mutating func add(_ event: MembershipEvent, process: Int, at now: Instant) {
        switch event {
        case .ticked: add(1, process: process, at: now)
        case .seedsResolved(let addresses):
            add(2, process: process, at: now)
            for address in addresses { add(UInt64(address.port)) }
        case .dialFailed: add(3, process: process, at: now)
        case .connectionOpened(let id, _, let member, let incarnation):
            add(4, process: process, at: now)
            add(id.number)
            add(MemberRecord(member, incarnation, .alive))
        case .connectionClosed(let id, let reason):
            add(5, process: process, at: now)
            add(id.number << 8 | UInt64(reason?.rawValue ?? 0))
        case .messageReceived(let message, let id):
            add(6, process: process, at: now)
            add(id.number)
            add(message)
        case .roleChanged(let role):
            add(7, process: process, at: now)
            add(UInt64(role.rawValue))
        case .leaveRequested: add(8, process: process, at: now)
        case .connectionNearlyExhausted(let id):
            add(9, process: process, at: now)
            add(id.number)
        }
    }
}
