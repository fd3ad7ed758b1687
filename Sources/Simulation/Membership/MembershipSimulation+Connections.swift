import Cluster
import Ground

/// What processes do on connections.
extension MembershipSimulation {
    /// Starts a dial on behalf of a process.
    mutating func dial(_ address: PeerAddress, from process: Int) {
        let deadline = now + settings.dialTimeout
        eventQueue.schedule(
            .dialArrives(process: process, address, deadline: deadline),
            at: now + network.conditions.transmissionDelay(using: &dice))
    }

    /// Completes a dial at the target host, which accepts or refuses it.
    mutating func dialArrives(_ process: Int, _ address: PeerAddress, deadline: Instant) {
        guard let host = network.host(at: address, from: processes[process].host) else {
            return eventQueue.schedule(
                .dialFails(process: process, address), at: max(now, deadline))
        }
        guard let acceptor = network.hosts[host].process else {
            let refused = now + network.conditions.latency(using: &dice)
            return eventQueue.schedule(.dialFails(process: process, address), at: refused)
        }
        guard !processes[process].hasEnded else { return }
        let link = network.connect(process, to: acceptor, at: address)
        for end in LinkEnd.both(of: link) {
            let here = network[end]
            processes[here.process].links[here.id] = end
            // The round trips of TCP and TLS.
            let first = network.conditions.transmissionDelay(using: &dice)
            let second = network.conditions.transmissionDelay(using: &dice)
            network[from: end].lastArrival = now + first + second
            sendHello(from: end)
        }
        eventQueue.schedule(.helloDue(link: link), at: max(now, deadline))
    }

    /// Sends the hello of one end; a paused process sends it when it resumes.
    mutating func sendHello(from end: LinkEnd) {
        let process = network[end].process
        guard processes[process].state != .paused else { return }
        let own = processes[process].membership.own
        processes[process].bytesSent += GossipMessage.helloBytes
        send(.hello(own.member, own.incarnation), from: end)
    }

    /// Reports a failed dial to the process, unless it has ended otherwise.
    mutating func dialFails(_ process: Int, _ address: PeerAddress) throws {
        guard processes[process].dialling.remove(address) != nil else { return }
        try deliver(process, .dialFailed(address))
    }

    /// Closes the ends that have waited too long for a hello.
    mutating func helloDue(_ link: Int) throws {
        for end in LinkEnd.both(of: link)
        where network[end].isOpen && !network[end].hasReceivedHello {
            drop(end, sending: .reset)
            if let address = network.dialledAddress(of: end) {
                try dialFails(network[end].process, address)
            }
        }
    }

    /// Sends a packet from one end of a connection.
    mutating func send(_ packet: SimulatedPacket, from end: LinkEnd) {
        let delay = network.conditions.transmissionDelay(using: &dice)
        network[from: end].append(packet, arrival: now + delay)
        planArrival(from: end)
    }

    /// Schedules the arrival of the first packet from one end, unless it is scheduled.
    private mutating func planArrival(from end: LinkEnd) {
        guard let instant = network[from: end].planArrival(now: now) else { return }
        eventQueue.schedule(.arrive(from: end), at: instant)
    }

    /// Handles the arrival of the first packet from one end, if it can pass.
    mutating func arrive(from end: LinkEnd) throws {
        network[from: end].arrived()
        let (sender, receiver) = (network[end], network[end.opposite])
        let (from, to) = (processes[sender.process].host, processes[receiver.process].host)
        guard network.hosts[from].isUp else { return }
        guard network.hosts[to].isUp, !network.isBlocked(from: from, to: to) else {
            if let instant = network[from: end].planRetransmission(now: now) {
                eventQueue.schedule(.arrive(from: end), at: instant)
            } else if sender.isOpen {
                try closed(end)
            }
            return
        }
        guard let packet = network[from: end].takeFirst() else { return }
        if receiver.isOpen {
            try receive(packet, at: end.opposite)
        } else if sender.isOpen, !network.isBlocked(from: to, to: from) {
            // The receiver does not know the connection (RST).
            try closed(end)
        }
        planArrival(from: end)
    }

    /// Delivers a packet to the process at one end.
    private mutating func receive(_ packet: SimulatedPacket, at end: LinkEnd) throws {
        let here = network[end]
        switch packet {
        case .hello(let member, let incarnation):
            network[end].hasReceivedHello = true
            let dialled = network.dialledAddress(of: end)
            if let dialled { processes[here.process].dialling.remove(dialled) }
            try deliver(
                here.process,
                .connectionOpened(here.id, dialled: dialled, member, incarnation))
        case .gossip(let message): try deliver(here.process, .messageReceived(message, on: here.id))
        case .goodbye(let reason): try closed(end, reason)
        case .reset: try closed(end)
        }
    }

    /// Closes one end of a connection that has broken, or that the other process has closed, and
    /// reports this to its process: as a failed dial if the connection was not open yet.
    mutating func closed(_ end: LinkEnd, _ reason: CloseReason? = nil) throws {
        let here = network[end]
        let isPaused = processes[here.process].state == .paused
        network[end].isOpen = false
        if here.hasReceivedHello {
            // A paused process still has the connection in its shell and may send on it.
            try deliver(here.process, .connectionClosed(here.id, reason))
            if !isPaused { processes[here.process].links[here.id] = nil }
        } else {
            processes[here.process].links[here.id] = nil
            guard let address = network.dialledAddress(of: end) else { return }
            try dialFails(here.process, address)
        }
    }

    /// Closes one end of a connection on behalf of its process, with a last packet unless it is
    /// `nil`.
    mutating func drop(_ end: LinkEnd, sending packet: SimulatedPacket?) {
        if let packet { send(packet, from: end) }
        let here = network[end]
        network[end].isOpen = false
        processes[here.process].links[here.id] = nil
    }
}
