package import Cluster
package import Ground

/// What the world does to its nodes.
extension MembershipWorld {
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
            address: hosts[host].address, weight: Member.usualWeight, versions: 1...1, role: role)
        let membership = Membership(
            member, Incarnation(epoch: epoch, count: 0), settings: settings, now: now)
        processes.append(
            SimulatedProcess(
                host: host, membership: membership, dice: Dice(seed: dice.next()),
                startedAt: now))
        let process = processes.count - 1
        if !partitions.isEmpty { processes[process].excusedUntil = .distantFuture }
        hosts[host].process = process
        note("\(name(process)) starts as \(member.id), epoch \(epoch)")
        timeline.plan(.resolve(process), at: now)
        planTick(process)
        return process
    }

    /// Kills a process; its machine closes the connections.
    package mutating func kill(_ process: Int) {
        note("\(name(process)) is killed")
        end(process, .gone)
    }

    /// The machine goes without a word.
    package mutating func powerOff(_ process: Int) {
        note("\(name(process)) goes with its machine")
        let host = processes[process].host
        hosts[host].isUp = false
        hosts[host].process = nil
        processes[process].state = .gone
        for place in processes[process].links.values {
            links[place.link].ends[place.end].isOpen = false
        }
        processes[process].links = [:]
    }

    package mutating func pause(_ process: Int) {
        note("\(name(process)) stands still")
        processes[process].state = .paused
        processes[process].excusedUntil = .distantFuture
    }

    /// What waited is read, before or after the tick that is late.
    package mutating func resume(_ process: Int) throws {
        note("\(name(process)) goes on")
        processes[process].state = .running
        processes[process].excusedUntil = now + .seconds(60)
        let waiting = processes[process].inbox
        processes[process].inbox = []
        if Bool.random(using: &dice) { try tell(process, .ticked) }
        for (id, place) in processes[process].links.sorted(by: { $0.key < $1.key })
        where processes[process].links[id] != nil && isHelloOwed(place) {
            sendHello(link: place.link, end: place.end)
        }
        for event in waiting {
            guard processes[process].isRunning else { return }
            // What the process closed meanwhile tells it nothing more.
            if let id = event.connection, processes[process].links[id] == nil { continue }
            try tell(process, event)
            if case .connectionClosed(let id, _) = event { processes[process].links[id] = nil }
        }
        planTick(process)
    }

    private func isHelloOwed(_ place: (link: Int, end: Int)) -> Bool {
        let flow = links[place.link].flows[place.end]
        return flow.packets.isEmpty && flow.head == 0
    }

    package mutating func leave(_ process: Int) throws {
        note("\(name(process)) is to leave")
        try tell(process, .leaveRequested)
    }

    package mutating func changeRole(_ process: Int, _ role: Member.Role) throws {
        try tell(process, .roleChanged(role))
    }

    /// Nothing passes from these hosts to the others, nor back unless it is one-way.
    package mutating func cut(_ cutOff: Set<Int>, isOneWay: Bool = false) {
        note("\(cutOff.sorted()) cut off\(isOneWay ? ", one way" : "")")
        partitions.append(Partition(hosts: cutOff, isOneWay: isOneWay))
        for process in running { processes[process].excusedUntil = .distantFuture }
    }

    /// These two hosts do not reach each other; everybody else does.
    package mutating func cutPair(_ one: Int, _ other: Int) {
        note("hosts \(one) and \(other) are cut off from each other")
        partitions.append(Partition(hosts: [one], from: [other], isOneWay: false))
    }

    package mutating func heal() {
        note("healed")
        partitions = []
        for process in running { processes[process].excusedUntil = now + .seconds(120) }
    }

    /// Breaks a connection at both ends.
    package mutating func reset(_ link: Int) throws {
        note("connection \(link) breaks")
        for end in 0...1 where links[link].ends[end].isOpen {
            try broken(link, end: end)
        }
    }

    /// One end of a connection has used nearly all its numbers.
    package mutating func wearOut(_ link: Int, end: Int) throws {
        note("connection \(link) wears out")
        let here = links[link].ends[end]
        try tell(here.process, .connectionWearsOut(here.id))
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
            send(.end, link: place.link, flow: place.end)
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
            .connectionWearsOut(let id), .received(_, let id):
            id
        case .ticked, .seedsResolved, .dialFailed, .roleChanged, .leaveRequested: nil
        }
    }
}
