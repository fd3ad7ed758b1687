package import Cluster
package import Ground

/// Hosts, connections and processes of ``Cluster/Membership`` under one seed, held to the laws of
/// membership at every step.
package struct MembershipSimulation: Sendable {
    /// How good the network is.
    package struct Conditions: Hashable, Sendable {
        /// Of packets that have to be sent again, 0 to 1.
        package var loss = 0.0
        /// One way.
        package var delay = Interval.milliseconds(1)
        /// Added to the delay, between nothing and this.
        package var jitter = Interval.milliseconds(1)

        package init() {}
    }

    struct Host: Sendable {
        let address: PeerAddress
        var isUp = true
        /// Who listens there.
        var process: Int?
    }

    /// From the hosts on one side nothing reaches the other hosts; nor back, unless it is one-way.
    struct Partition: Sendable {
        let hosts: Set<Int>
        /// Nil for all others.
        var from: Set<Int>?
        let isOneWay: Bool
    }

    enum Event: Sendable {
        case tick(Int)
        case arrive(link: Int, flow: Int)
        case dialArrives(process: Int, PeerAddress, deadline: Instant)
        case dialFails(process: Int, PeerAddress)
        case helloDue(link: Int)
        case resolve(Int)
    }

    package let seed: UInt64
    package internal(set) var now = Instant(nanoseconds: 1_000_000_000)
    package internal(set) var conditions: Conditions
    package internal(set) var processes: [SimulatedProcess] = []
    var dice: SplitMix64
    var eventQueue = EventQueue<Event>()
    var hosts: [Host] = []
    var links: [SimulatedLink] = []
    var partitions: [Partition] = []
    var trace = TraceDigest()
    var history: [String] = []
    /// The hosts whose addresses every node is told as seeds.
    package var seedHosts: [Int] = []
    /// The name server does not answer.
    package var isResolverDown = false
    /// Members that were believed dead while they lived and could be reached.
    package internal(set) var falsePositives = 0
    /// How often a process has closed, as not needed, the only connection that both had.
    package internal(set) var unwantedDisconnects = 0
    /// One process has come to believe another dead.
    package struct DeathReport: Hashable, Sendable {
        package let of: Int
        package let by: Int
        package let at: Instant
    }

    /// In the order in which they happened.
    package internal(set) var deathReports: [DeathReport] = []
    let settings: Membership.Settings

    package init(
        seed: UInt64, conditions: Conditions = Conditions(),
        settings: Membership.Settings = Membership.Settings()
    ) {
        self.seed = seed
        self.conditions = conditions
        self.settings = settings
        dice = SplitMix64(seed: seed)
    }

    /// Of everything that has happened.
    package var digest: UInt64 { trace.value }
    package var eventCount: UInt64 { trace.events }

    /// Processes that take part, in the order of their starts.
    package var running: [Int] { processes.indices.filter { processes[$0].isRunning } }

    // MARK: Time

    /// Lets `interval` go by.
    ///
    /// - Throws: a ``Violation`` as soon as a law does not hold.
    package mutating func run(for interval: Interval) throws {
        let end = now + interval
        while let next = eventQueue.next, next <= end { try step() }
        now = end
    }

    /// Lets time go by until `isReached`, looked at every `pace`, but not past `limit`.
    ///
    /// - Returns: how long it took; nil if it was not reached.
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

    // MARK: A process and its shell

    /// Hands an event to a process, or keeps it until it runs again.
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

    mutating func planTick(_ process: Int) {
        let wanted = max(processes[process].membership.nextTick, now)
        guard wanted < processes[process].plannedTick, processes[process].isRunning else { return }
        // A loop's timers are late by a little.
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

    // MARK: Telling what happened

    mutating func log(_ line: String) {
        if history.count > 4_000 { history.removeFirst(2_000) }
        history.append("\(now.nanoseconds / 1_000_000) ms: \(line)")
    }

    func name(_ process: Int) -> String {
        "process \(process) of host \(processes[process].host)"
    }

    private func other(_ place: (link: Int, end: Int)) -> String {
        name(links[place.link].ends[1 - place.end].process)
    }

    func require(_ holds: Bool, _ law: @autoclosure () -> String) throws {
        guard !holds else { return }
        throw violation(law())
    }

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
