package import Cluster
package import Ground

/// Hosts, processes and faults.
extension MembershipSimulation {
    /// Adds a host with an address of its own and returns its index.
    package mutating func addHost() -> Int {
        network.addHost()
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
        precondition(network.hosts[host].process == nil, "two processes on one host")
        network.hosts[host].isUp = true
        let member = Member(
            id: id ?? NodeID(using: &dice), process: ProcessID(using: &dice),
            address: network.hosts[host].address, weight: Member.defaultWeight, versions: 1...1,
            role: role)
        let membership = Membership(
            member, Incarnation(epoch: epoch, count: 0), settings: settings, now: now)
        processes.append(
            SimulatedProcess(
                host: host, membership: membership, dice: SplitMix64(seed: dice.next()),
                startedAt: now))
        let process = processes.count - 1
        if !network.partitions.isEmpty { processes[process].exemptUntil = .distantFuture }
        network.hosts[host].process = process
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

    /// Stops the host of a process without closing its connections.
    package mutating func powerOff(_ process: Int) {
        log("\(name(process)) goes with its machine")
        network.hosts[processes[process].host].isUp = false
        end(process, .ended, closingWith: nil)
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
        for (id, end) in processes[process].links.sorted(by: { $0.key < $1.key })
        where processes[process].links[id] != nil && network[from: end].isUnused {
            sendHello(from: end)
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

    /// Requests that a process leaves the cluster.
    package mutating func leave(_ process: Int) throws {
        log("\(name(process)) is to leave")
        try deliver(process, .leaveRequested)
    }

    /// Blocks traffic from the hosts `cutOff` to all others, and back unless it is one-way.
    package mutating func cut(_ cutOff: Set<Int>, isOneWay: Bool = false) {
        log("\(cutOff.sorted()) cut off\(isOneWay ? ", one way" : "")")
        network.partitions.append(.init(hosts: cutOff, isOneWay: isOneWay))
        for process in running { processes[process].exemptUntil = .distantFuture }
    }

    /// Blocks traffic between two hosts only.
    package mutating func cutPair(_ one: Int, _ other: Int) {
        log("hosts \(one) and \(other) are cut off from each other")
        network.partitions.append(.init(hosts: [one], from: [other], isOneWay: false))
    }

    /// Ends all partitions.
    package mutating func heal() {
        log("healed")
        network.partitions = []
        for process in running { processes[process].exemptUntil = now + .seconds(120) }
    }

    /// Breaks a connection at both ends.
    package mutating func reset(_ link: Int) throws {
        log("connection \(link) breaks")
        for end in LinkEnd.both(of: link) where network[end].isOpen { try closed(end) }
    }

    /// Reports at one end of a connection that its stream numbers are nearly exhausted.
    package mutating func wearOut(_ link: Int, end: Int) throws {
        log("connection \(link) wears out")
        let here = network[LinkEnd(link: link, end: end)]
        try deliver(here.process, .connectionNearlyExhausted(here.id))
    }

    /// Ends a process; its host closes the connections with a last packet, or with `nil` silently.
    mutating func end(
        _ process: Int, _ state: SimulatedProcess.State,
        closingWith packet: SimulatedPacket? = .reset
    ) {
        processes[process].state = state
        let host = processes[process].host
        if network.hosts[host].process == process { network.hosts[host].process = nil }
        for (_, end) in processes[process].links.sorted(by: { $0.key < $1.key }) {
            drop(end, sending: packet)
        }
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
