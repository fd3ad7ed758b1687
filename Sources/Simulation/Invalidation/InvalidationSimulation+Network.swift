import Cluster
import Ground
import Serving

/// Connections between nodes.
///
/// Messages on one connection arrive in order or are lost with it; different connections are
/// independent.
extension InvalidationSimulation {
    /// Returns the index of the connection between two nodes in ``links``.
    func linkIndex(_ one: Int, _ other: Int) -> Int {
        min(one, other) * nodes.count + max(one, other)
    }

    func link(_ one: Int, _ other: Int) -> Link { links[linkIndex(one, other)] }

    /// Sends a message after a random delay, if the connection is open.
    mutating func send(_ message: SimulatedMessage, from: Int, to: Int) {
        let line = link(from, to)
        guard line.isOpen else { return }
        let way = from * nodes.count + to
        var delay = milliseconds(1...4)
        if !isQuiescent {
            // A lost frame is retransmitted and delays those behind it.
            if chance(oneIn: 40) { delay = milliseconds(30...400) }
            if blocked[way] > now { delay = delay + (blocked[way] - now) }
            if nodes[to].laggingUntil > now { delay = delay + nodes[to].lag }
        }
        let at = max(now + delay, lastArrival[way])
        lastArrival[way] = at
        eventQueue.schedule(.arrive(from: from, to: to, line: line.number, message), at: at)
    }

    /// Connects two nodes that can reach each other, or schedules another attempt.
    mutating func connect(_ one: Int, _ other: Int) {
        let place = linkIndex(one, other)
        guard nodes[one].isUp, nodes[other].isUp, !links[place].isOpen else { return }
        let count = nodes.count
        guard blocked[one * count + other] <= now, blocked[other * count + one] <= now,
            nodes[one].pausedUntil <= now, nodes[other].pausedUntil <= now,
            nodes[one].wrongSecretUntil <= now, nodes[other].wrongSecretUntil <= now
        else {
            nodes[one].discovery?.dialFailed(Self.address(other))
            nodes[other].discovery?.dialFailed(Self.address(one))
            return eventQueue.schedule(.reconnect(one, other), at: now + milliseconds(100...400))
        }
        guard !detectsRestoredCopy(one, other), !detectsRestoredCopy(other, one) else { return }
        linkNumber += 1
        links[place].number = linkNumber
        links[place].isOpen = true
        lastArrival[one * count + other] = now
        lastArrival[other * count + one] = now
        for (here, there) in [(one, other), (other, one)] {
            let id = nodes[there].id
            nodes[here].hasTable = true
            nodes[here].discovery?.addressAnswered(Self.address(there), by: id)
            deliver(here, .connected(nodes[there].id, on: ConnectionID(linkNumber)))
        }
    }

    /// Breaks a connection: messages in transit are lost, and waiting requests go elsewhere.
    mutating func disconnect(_ one: Int, _ other: Int) {
        let place = linkIndex(one, other)
        guard links[place].isOpen else { return }
        links[place].isOpen = false
        links[place].brokenAt = now
        for (here, there) in [(one, other), (other, one)] where nodes[here].isUp {
            deliver(here, .disconnected(nodes[there].id))
            lost(here, there)
        }
        eventQueue.schedule(.reconnect(one, other), at: now + milliseconds(20...600))
    }

    /// Blocks traffic from some nodes to others for `interval`; connections break as a result.
    mutating func partition(for interval: Interval) {
        let side = nodes.indices.filter { _ in Bool.random(using: &dice) }
        let isOneWay = chance(oneIn: 3)
        let end = now + interval
        log("partition of \(side) for \(interval.milliseconds) ms, one way: \(isOneWay)")
        if interval > Self.forgetAfter, !side.isEmpty, side.count < nodes.count {
            cover(.longPartition)
        }
        for from in nodes.indices {
            for to in nodes.indices where side.contains(from) != side.contains(to) {
                guard side.contains(from) || !isOneWay, !chance(oneIn: 5) else { continue }
                let way = from * nodes.count + to
                blocked[way] = max(blocked[way], end)
                guard link(from, to).isOpen else { continue }
                eventQueue.schedule(
                    .breakLink(from, to, line: link(from, to).number),
                    at: now + milliseconds(800...3_000))
            }
        }
    }

    /// Isolates one of the nodes that have just joined, before the others know it well.
    mutating func isolate() {
        let index = Int.random(in: scenario.nodes..<nodes.count, using: &dice)
        let end = now + milliseconds(300...3_000)
        log("node \(index) is cut off until \(end.nanoseconds / 1_000) us")
        for other in nodes.indices where other != index {
            for way in [index * nodes.count + other, other * nodes.count + index] {
                blocked[way] = max(blocked[way], end)
            }
            disconnect(index, other)
        }
    }

    // MARK: Visibility

    /// Updates the nodes' views of the members, without simulating the membership protocol.
    mutating func updateMembership() {
        eventQueue.schedule(
            .updateMembership, at: now + .milliseconds(nodes.count > 20 ? 500 : 200))
        for index in nodes.indices where nodes[index].isUp && nodes[index].pausedUntil <= now {
            updateMembershipOf(index)
        }
    }

    private mutating func updateMembershipOf(_ index: Int) {
        var members: [ReplicationMember] = []
        var isChanged = false
        var news = false
        for other in nodes.indices where other != index && nodes[other].wasStarted {
            let line = link(index, other)
            let isRecent = now - line.brokenAt < .milliseconds(1_500)
            let isSeen =
                isVisible(other, by: index)
                || (nodes[index].visibleNodes[other] && isRecent && !nodes[other].hasLeft)
            if isSeen != nodes[index].visibleNodes[other] {
                nodes[index].visibleNodes[other] = isSeen
                nodes[index].unseenSince[other] = isSeen ? nil : now
                isChanged = true
                news = news || isSeen
            }
            members.append(
                ReplicationMember(
                    nodes[other].id, nodes[other].process,
                    isSeen ? .live : nodes[other].hasLeft ? .left : .dead))
        }
        guard isChanged else { return }
        deliver(index, .membersChanged(members))
        if news { nodes[index].offersDue = now + .seconds(2) }
    }

    /// Returns true if there is a connection, or a node connected with both.
    private func isVisible(_ other: Int, by index: Int) -> Bool {
        link(index, other).isOpen
            || nodes.indices.contains { link(index, $0).isOpen && link($0, other).isOpen }
    }

    /// Returns the owners of the key in the node's view, in order of preference.
    func owners(of key: Int, seenBy index: Int) -> [Int] {
        preference[key].filter { other in
            guard other < nodes.count else { return false }
            if other == index { return !nodes[index].isDraining }
            return nodes[index].visibleNodes[other] && !nodes[other].isDraining
        }
    }

    /// Returns the owners of the key in the node's view, with their reachability.
    func candidates(for key: Int, at index: Int) -> [OwnerSearch.Candidate] {
        owners(of: key, seenBy: index).map {
            OwnerSearch.Candidate(nodes[$0].id, isReachable: $0 == index || link(index, $0).isOpen)
        }
    }

    /// Returns the index of the node that has, or had, an id.
    func index(of id: NodeID) -> Int {
        places[id] ?? 0
    }
}
