package import Cluster
package import Ground

/// Hosts, processes and faults.
extension MembershipSimulation {
    /// Adds a host with an address of its own and returns its index.
    package mutating func addHost() -> Int {
        let number = UInt32(hosts.count)
        let address = PeerAddress(
            .v4(0x0A00_0000 + number), port: UInt16(7_000 + number % 1_000))
        hosts.append(Host(address: address))
        return hosts.count - 1
    }

    /// Starts a process on a host and returns its index.
    ///
    /// - Parameters:
    ///   - host: The index of a host without a process.
    ///   - id: The node id, that of an earlier process for a restart; `nil` for a new one.
    ///   - epoch: The boot epoch.
    ///   - role: The duties that the node accepts.
    /// - Returns: The index of the new process in `processes`.
    package mutating func start(
        host: Int, id: NodeID? = nil, epoch: UInt64 = 1, role: Member.Role = .isCaughtUp
    ) -> Int {
        precondition(hosts[host].process == nil, "two processes on one host")
        hosts[host].isUp = true
        let member = Member(
            id: id ?? NodeID(using: &dice), process: ProcessID(using: &dice),
            address: hosts[host].address, weight: Member.defaultWeight, versions: 1...1, role: role)
        let membership = Membership(
            member, Incarnation(epoch: epoch, count: 0), settings: settings, now: now)
        processes.append(
            SimulatedProcess(
                host: host, membership: membership, dice: SplitMix64(seed: dice.next()),
                startedAt: now))
        let process = processes.count - 1
        if !partitions.isEmpty { processes[process].exemptUntil = .distantFuture }
        hosts[host].process = process
        log("\(name(process)) starts as \(member.id), epoch \(epoch)")
        eventQueue.schedule(.resolve(process), at: now)
        planTick(process)
        return process
    }

    /// Kills a process; its host closes the connections.
    package mutating func kill(_ process: Int) {
        log("\(name(process)) is killed")
        end(process, .ended)
    }

    /// Stops a host without closing its connections.
    package mutating func powerOff(_ process: Int) {
        log("\(name(process)) goes with its machine")
        let host = processes[process].host
        hosts[host].isUp = false
        hosts[host].process = nil
        processes[process].state = .ended
        for place in processes[process].links.values {
            links[place.link].ends[place.end].isOpen = false
        }
        processes[process].links = [:]
    }

    /// Stops a process temporarily, as SIGSTOP does.
    package mutating func pause(_ process: Int) {
        log("\(name(process)) stands still")
        processes[process].state = .paused
        processes[process].exemptUntil = .distantFuture
    }

    /// Resumes a paused process.
    ///
    /// The events that have waited are delivered before or after the late tick.
    package mutating func resume(_ process: Int) throws {
        log("\(name(process)) goes on")
        processes[process].state = .running
        processes[process].exemptUntil = now + .seconds(60)
        let waiting = processes[process].inbox
        processes[process].inbox = []
        if Bool.random(using: &dice) { try deliver(process, .ticked) }
        for (id, place) in processes[process].links.sorted(by: { $0.key < $1.key })
        where processes[process].links[id] != nil && isHelloOwed(place) {
            sendHello(link: place.link, end: place.end)
        }
        for event in waiting {
            guard processes[process].isRunning else { return }
            // A connection that the process has closed meanwhile delivers no more events.
            if let id = event.connection, processes[process].links[id] == nil { continue }
            try deliver(process, event)
            if case .connectionClosed(let id, _) = event { processes[process].links[id] = nil }
        }
        planTick(process)
    }

    private func isHelloOwed(_ place: (link: Int, end: Int)) -> Bool {
        let flow = links[place.link].flows[place.end]
        return flow.packets.isEmpty && flow.head == 0
    }

    /// Requests that a process leaves the cluster.
    package mutating func leave(_ process: Int) throws {
        log("\(name(process)) is to leave")
        try deliver(process, .leaveRequested)
    }

    /// Changes the role of a process.
    package mutating func changeRole(_ process: Int, _ role: Member.Role) throws {
        try deliver(process, .roleChanged(role))
    }

    /// Blocks traffic from the hosts `cutOff` to all others, and back unless it is one-way.
    package mutating func cut(_ cutOff: Set<Int>, isOneWay: Bool = false) {
        log("\(cutOff.sorted()) cut off\(isOneWay ? ", one way" : "")")
        partitions.append(Partition(hosts: cutOff, isOneWay: isOneWay))
        for process in running { processes[process].exemptUntil = .distantFuture }
    }

    /// Blocks traffic between two hosts only.
    package mutating func cutPair(_ one: Int, _ other: Int) {
        log("hosts \(one) and \(other) are cut off from each other")
        partitions.append(Partition(hosts: [one], from: [other], isOneWay: false))
    }

    /// Ends all partitions.
    package mutating func heal() {
        log("healed")
        partitions = []
        for process in running { processes[process].exemptUntil = now + .seconds(120) }
    }

    /// Breaks a connection at both ends.
    package mutating func reset(_ link: Int) throws {
        log("connection \(link) breaks")
        for end in 0...1 where links[link].ends[end].isOpen {
            try breakEnd(link, end: end)
        }
    }

    /// Reports at one end of a connection that its stream numbers are nearly exhausted.
    package mutating func wearOut(_ link: Int, end: Int) throws {
        log("connection \(link) wears out")
        let here = links[link].ends[end]
        try deliver(here.process, .connectionNearlyExhausted(here.id))
    }

    /// The connections that are open at both ends.
    package var openLinks: [Int] {
        links.indices.filter { links[$0].ends[0].isOpen && links[$0].ends[1].isOpen }
    }

    /// Ends a process; its host closes the connections.
    mutating func end(_ process: Int, _ state: SimulatedProcess.State) {
        processes[process].state = state
        if hosts[processes[process].host].process == process {
            hosts[processes[process].host].process = nil
        }
        for (_, place) in processes[process].links.sorted(by: { $0.key < $1.key }) {
            send(.reset, link: place.link, flow: place.end)
            links[place.link].ends[place.end].isOpen = false
        }
        processes[process].links = [:]
    }
}

extension MembershipEvent {
    /// The connection of the event; `nil` if it has none.
    fileprivate var connection: ConnectionID? {
        switch self {
        case .connectionOpened(let id, _, _, _), .connectionClosed(let id, _),
            .connectionNearlyExhausted(let id), .messageReceived(_, let id):
            id
        case .ticked, .seedsResolved, .dialFailed, .roleChanged, .leaveRequested: nil
        }
    }
}
