import Cluster
import Ground

/// Connections with the properties of TCP.
///
/// Lost packets are retransmitted, blocked packets wait, and a connection breaks after a time-out.
extension MembershipSimulation {
    /// The first retransmission time-out (RFC 6298 has 1 s; kernels start at 200 ms).
    private static let retry = Interval.milliseconds(200)
    private static let retryMax = Interval.seconds(30)
    /// The time without acknowledgement after which a connection breaks (TCP_USER_TIMEOUT).
    private static let patience = Interval.seconds(40)

    /// Returns true if a partition blocks traffic from one host to another.
    func isBlocked(from: Int, to: Int) -> Bool {
        partitions.contains { partition in
            let (left, right) = (partition.hosts.contains(from), partition.hosts.contains(to))
            guard left != right, left || !partition.isOneWay else { return false }
            return partition.from?.contains(left ? to : from) ?? true
        }
    }

    /// Returns true if traffic passes in both directions.
    func isReachable(_ one: Int, _ other: Int) -> Bool {
        !isBlocked(from: one, to: other) && !isBlocked(from: other, to: one)
    }

    private mutating func latency() -> Interval {
        let jitter = conditions.jitter.nanoseconds
        let added = jitter > 0 ? Int64.random(in: 0..<jitter, using: &dice) : 0
        return conditions.delay + Interval(nanoseconds: added)
    }

    /// Returns true if a packet is lost.
    private mutating func isLost() -> Bool {
        conditions.loss > 0 && Double.random(in: 0..<1, using: &dice) < conditions.loss
    }

    /// Returns the delay of a packet, including its retransmissions.
    private mutating func transmissionDelay() -> Interval {
        var total = latency()
        var retry = Self.retry
        while isLost(), retry < .seconds(10) {
            total = total + retry
            retry = retry + retry
        }
        return total
    }

    // MARK: Dialling

    /// Starts a dial on behalf of a process.
    mutating func dial(_ address: PeerAddress, from process: Int) {
        let instant = now + transmissionDelay()
        eventQueue.schedule(
            .dialArrives(process: process, address, deadline: now + settings.dialTimeout),
            at: instant)
    }

    /// Completes a dial at the target host, which accepts or refuses it.
    mutating func dialArrives(_ process: Int, _ address: PeerAddress, deadline: Instant) {
        let from = processes[process].host
        let found = hosts.firstIndex { $0.address == address }
        guard let to = found, hosts[to].isUp, isReachable(from, to) else {
            return eventQueue.schedule(
                .dialFails(process: process, address), at: max(now, deadline))
        }
        guard let acceptor = hosts[to].process else {
            let refused = now + latency()
            return eventQueue.schedule(.dialFails(process: process, address), at: refused)
        }
        guard processes[process].state != .ended, processes[process].state != .refusedToServe else {
            return
        }
        let number = UInt64(links.count)
        let link = SimulatedLink(
            dialled: address,
            ends: [
                SimulatedLink.End(process: process, id: ConnectionID(2 * number)),
                SimulatedLink.End(process: acceptor, id: ConnectionID(2 * number + 1)),
            ])
        links.append(link)
        let index = links.count - 1
        for end in 0...1 {
            processes[link.ends[end].process].links[link.ends[end].id] = (index, end)
            // The round trips of TCP and TLS.
            links[index].flows[end].lastArrival = now + transmissionDelay() + transmissionDelay()
            sendHello(link: index, end: end)
        }
        eventQueue.schedule(.helloDue(link: index), at: max(now, deadline))
    }

    /// Sends the hello of one end; a paused process sends it when it resumes.
    mutating func sendHello(link: Int, end: Int) {
        let process = links[link].ends[end].process
        guard processes[process].state != .paused else { return }
        let own = processes[process].membership.own
        processes[process].bytesSent += GossipMessage.helloBytes
        send(.hello(own.member, own.incarnation), link: link, flow: end)
    }

    /// Reports a failed dial to the process, unless it has ended otherwise.
    mutating func dialFails(_ process: Int, _ address: PeerAddress) throws {
        guard processes[process].dialling.remove(address) != nil else { return }
        try deliver(process, .dialFailed(address))
    }

    /// Closes the ends that have waited too long for a hello.
    mutating func helloDue(_ link: Int) throws {
        for end in 0...1
        where links[link].ends[end].isOpen && !links[link].ends[end].hasReceivedHello {
            let process = links[link].ends[end].process
            send(.reset, link: link, flow: end)
            drop(link, end: end)
            if end == 0 { try dialFails(process, links[link].dialled) }
        }
    }

    // MARK: Packets

    /// Sends a packet on one direction of a connection.
    mutating func send(_ packet: SimulatedPacket, link: Int, flow: Int) {
        let arrival = max(now + transmissionDelay(), links[link].flows[flow].lastArrival)
        links[link].flows[flow].lastArrival = arrival
        links[link].flows[flow].packets.append((packet, arrival))
        planArrival(link, flow)
    }

    private mutating func planArrival(_ link: Int, _ flow: Int) {
        let state = links[link].flows[flow]
        guard !state.isPlanned, !state.isEmpty else { return }
        links[link].flows[flow].isPlanned = true
        eventQueue.schedule(
            .arrive(link: link, flow: flow), at: max(now, state.packets[state.head].arrival))
    }

    /// Handles the arrival of the first packet of a direction, if it can pass.
    mutating func arrive(_ link: Int, _ flow: Int) throws {
        links[link].flows[flow].isPlanned = false
        let sender = links[link].ends[flow]
        let receiver = links[link].ends[1 - flow]
        let (from, to) = (processes[sender.process].host, processes[receiver.process].host)
        if !hosts[from].isUp { return }
        if isBlocked(from: from, to: to) || !hosts[to].isUp { return try stall(link, flow) }
        links[link].flows[flow].retries = 0
        links[link].flows[flow].stalledSince = nil
        guard !links[link].flows[flow].isEmpty else { return }
        let packet = links[link].flows[flow].takeFirst()
        if receiver.isOpen {
            try receive(packet, link, end: 1 - flow)
        } else if sender.isOpen, !isBlocked(from: to, to: from) {
            // The receiver does not know the connection (RST).
            try breakEnd(link, end: flow)
        }
        planArrival(link, flow)
    }

    /// Schedules a retransmission of a blocked packet, or breaks the connection after the time-out.
    private mutating func stall(_ link: Int, _ flow: Int) throws {
        let since = links[link].flows[flow].stalledSince ?? now
        links[link].flows[flow].stalledSince = since
        guard now - since < Self.patience else {
            if links[link].ends[flow].isOpen { try breakEnd(link, end: flow) }
            return
        }
        var wait = Self.retry
        for _ in 0..<min(links[link].flows[flow].retries, 10) { wait = wait + wait }
        links[link].flows[flow].retries += 1
        links[link].flows[flow].isPlanned = true
        eventQueue.schedule(.arrive(link: link, flow: flow), at: now + min(wait, Self.retryMax))
    }

    private mutating func receive(_ packet: SimulatedPacket, _ link: Int, end: Int) throws {
        let here = links[link].ends[end]
        switch packet {
        case .hello(let member, let incarnation):
            links[link].ends[end].hasReceivedHello = true
            let dialled = end == 0 ? links[link].dialled : nil
            if let dialled { processes[here.process].dialling.remove(dialled) }
            try deliver(
                here.process,
                .connectionOpened(here.id, dialled: dialled, member, incarnation))
        case .gossip(let message): try deliver(here.process, .messageReceived(message, on: here.id))
        case .goodbye(let reason): try closed(link, end: end, reason)
        case .reset: try closed(link, end: end, nil)
        }
    }

    /// Closes one end of a connection that broke.
    mutating func breakEnd(_ link: Int, end: Int) throws {
        try closed(link, end: end, nil)
    }

    private mutating func closed(_ link: Int, end: Int, _ reason: CloseReason?) throws {
        let here = links[link].ends[end]
        let isPaused = processes[here.process].state == .paused
        links[link].ends[end].isOpen = false
        if here.hasReceivedHello {
            // A paused process still has the connection in its shell and may send on it.
            try deliver(here.process, .connectionClosed(here.id, reason))
            if !isPaused { processes[here.process].links[here.id] = nil }
        } else {
            processes[here.process].links[here.id] = nil
            if end == 0 { try dialFails(here.process, links[link].dialled) }
        }
    }

    /// Closes one end of a connection on behalf of its process.
    mutating func drop(_ link: Int, end: Int) {
        let here = links[link].ends[end]
        links[link].ends[end].isOpen = false
        processes[here.process].links[here.id] = nil
    }
}
