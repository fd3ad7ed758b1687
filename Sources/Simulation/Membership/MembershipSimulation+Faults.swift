package import Cluster
package import Ground

/// What the world does to its nodes.
extension MembershipSimulation {
    /// A machine with an address of its own.
    package mutating func addHost() -> Int {
        let number = UInt32(hosts.count)
        let address = PeerAddress(
            .v4(0x0A00_0000 + number), port: UInt16(7_000 + number % 1_000))
        hosts.append(Host(address: address))
        return hosts.count - 1
    }

    /// Starts a node there; a restart has the id of an earlier process.
    package mutating func start(
        host: Int, id: NodeID? = nil, epoch: UInt64 = 1, role: Member.Role = .isCaughtUp
    ) throws -> Int {
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

    /// Kills a process; its machine closes the connections.
    package mutating func kill(_ process: Int) {
        log("\(name(process)) is killed")
        end(process, .ended)
    }

    /// The machine goes without a word.
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

    package mutating func pause(_ process: Int) {
        log("\(name(process)) stands still")
        processes[process].state = .paused
        processes[process].exemptUntil = .distantFuture
    }

    /// What waited is read, before or after the tick that is late.
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
            // What the process closed meanwhile tells it nothing more.
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

    package mutating func leave(_ process: Int) throws {
        log("\(name(process)) is to leave")
        try deliver(process, .leaveRequested)
    }

    package mutating func changeRole(_ process: Int, _ role: Member.Role) throws {
        try deliver(process, .roleChanged(role))
    }

    /// Nothing passes from these hosts to the others, nor back unless it is one-way.
    package mutating func cut(_ cutOff: Set<Int>, isOneWay: Bool = false) {
        log("\(cutOff.sorted()) cut off\(isOneWay ? ", one way" : "")")
        partitions.append(Partition(hosts: cutOff, isOneWay: isOneWay))
        for process in running { processes[process].exemptUntil = .distantFuture }
    }

    /// These two hosts do not reach each other; everybody else does.
    package mutating func cutPair(_ one: Int, _ other: Int) {
        log("hosts \(one) and \(other) are cut off from each other")
        partitions.append(Partition(hosts: [one], from: [other], isOneWay: false))
    }

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

    /// One end of a connection has used nearly all its numbers.
    package mutating func wearOut(_ link: Int, end: Int) throws {
        log("connection \(link) wears out")
        let here = links[link].ends[end]
        try deliver(here.process, .connectionNearlyExhausted(here.id))
    }

    /// Links that both ends have.
    package var openLinks: [Int] {
        links.indices.filter { links[$0].ends[0].isOpen && links[$0].ends[1].isOpen }
    }

    /// The process is over and its machine closes what it had.
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
    /// The connection that it is about.
    fileprivate var connection: ConnectionID? {
        switch self {
        case .connectionOpened(let id, _, _, _), .connectionClosed(let id, _),
            .connectionNearlyExhausted(let id), .messageReceived(_, let id):
            id
        case .ticked, .seedsResolved, .dialFailed, .roleChanged, .leaveRequested: nil
        }
    }
}
