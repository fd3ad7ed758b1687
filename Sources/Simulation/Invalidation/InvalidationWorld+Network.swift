import Cluster
import Ground
import Serving

/// Connections: what is sent on one comes in order or breaks with it; two are not in step.
extension InvalidationWorld {
    func place(_ one: Int, _ other: Int) -> Int {
        min(one, other) * nodes.count + max(one, other)
    }

    func line(_ one: Int, _ other: Int) -> Line { lines[place(one, other)] }

    mutating func send(_ message: Message, from: Int, to: Int) {
        let line = line(from, to)
        guard line.isOpen else { return }
        let way = from * nodes.count + to
        var delay = milliseconds(1...4)
        if !isCalm {
            // A frame that is lost is sent again, and holds up what follows it.
            if throwsOne(in: 40) { delay = milliseconds(30...400) }
            if blocked[way] > now { delay = delay + (blocked[way] - now) }
            if nodes[to].laggingUntil > now { delay = delay + nodes[to].lag }
        }
        let at = max(now + delay, lastArrival[way])
        lastArrival[way] = at
        timeline.plan(.arrive(from: from, to: to, line: line.number, message), at: at)
    }

    mutating func connect(_ one: Int, _ other: Int) {
        let place = place(one, other)
        guard nodes[one].isUp, nodes[other].isUp, !lines[place].isOpen else { return }
        let count = nodes.count
        guard blocked[one * count + other] <= now, blocked[other * count + one] <= now,
            nodes[one].pausedUntil <= now, nodes[other].pausedUntil <= now,
            nodes[one].strangerUntil <= now, nodes[other].strangerUntil <= now
        else {
            nodes[one].watch?.dialFailed(Self.address(other))
            nodes[other].watch?.dialFailed(Self.address(one))
            return timeline.plan(.reconnect(one, other), at: now + milliseconds(100...400))
        }
        guard !hasForgottenMore(one, other), !hasForgottenMore(other, one) else { return }
        lineNumber += 1
        lines[place].number = lineNumber
        lines[place].isOpen = true
        lastArrival[one * count + other] = now
        lastArrival[other * count + one] = now
        for (here, there) in [(one, other), (other, one)] {
            let id = nodes[there].id
            nodes[here].hasTable = true
            nodes[here].watch?.answered(Self.address(there), by: id)
            tell(here, .connected(nodes[there].id, on: ConnectionID(lineNumber)))
        }
    }

    /// What is on its way is lost; whoever waits for an answer goes elsewhere.
    mutating func disconnect(_ one: Int, _ other: Int) {
        let place = place(one, other)
        guard lines[place].isOpen else { return }
        lines[place].isOpen = false
        lines[place].brokenAt = now
        for (here, there) in [(one, other), (other, one)] where nodes[here].isUp {
            tell(here, .disconnected(nodes[there].id))
            lost(here, there)
        }
        timeline.plan(.reconnect(one, other), at: now + milliseconds(20...600))
    }

    /// From some to others nothing goes any more, for a while; connections break of it.
    mutating func partition(for interval: Interval) {
        let side = nodes.indices.filter { _ in Bool.random(using: &dice) }
        let isOneWay = throwsOne(in: 3)
        let end = now + interval
        note("partition of \(side) for \(interval.milliseconds) ms, one way: \(isOneWay)")
        if interval > Self.forgetAfter, !side.isEmpty, side.count < nodes.count {
            reach(.longPartition)
        }
        for from in nodes.indices {
            for to in nodes.indices where side.contains(from) != side.contains(to) {
                guard side.contains(from) || !isOneWay, !throwsOne(in: 5) else { continue }
                let way = from * nodes.count + to
                blocked[way] = max(blocked[way], end)
                guard line(from, to).isOpen else { continue }
                timeline.plan(
                    .breakLine(from, to, line: line(from, to).number),
                    at: now + milliseconds(800...3_000))
            }
        }
    }

    /// One of those that have just come is cut off, as the others are not yet used to it.
    mutating func isolate() {
        let index = Int.random(in: plan.nodes..<nodes.count, using: &dice)
        let end = now + milliseconds(300...3_000)
        note("node \(index) is cut off until \(end.nanoseconds / 1_000) us")
        for other in nodes.indices where other != index {
            for way in [index * nodes.count + other, other * nodes.count + index] {
                blocked[way] = max(blocked[way], end)
            }
            disconnect(index, other)
        }
    }

    // MARK: Who sees whom

    /// What membership comes to think, without its own way there.
    mutating func introduceAll() {
        timeline.plan(.introduce, at: now + .milliseconds(nodes.count > 20 ? 500 : 200))
        for index in nodes.indices where nodes[index].isUp && nodes[index].pausedUntil <= now {
            introduce(index)
        }
    }

    private mutating func introduce(_ index: Int) {
        var members: [ExchangeMember] = []
        var isChanged = false
        var news = false
        for other in nodes.indices where other != index && nodes[other].wasStarted {
            let line = line(index, other)
            let isRecent = now - line.brokenAt < .milliseconds(1_500)
            let isSeen =
                isHeardOf(other, by: index)
                || (nodes[index].isSeen[other] && isRecent && !nodes[other].hasLeft)
            if isSeen != nodes[index].isSeen[other] {
                nodes[index].isSeen[other] = isSeen
                nodes[index].unseenSince[other] = isSeen ? nil : now
                isChanged = true
                news = news || isSeen
            }
            members.append(
                ExchangeMember(
                    nodes[other].id, nodes[other].process,
                    isSeen ? .here : nodes[other].hasLeft ? .left : .away))
        }
        guard isChanged else { return }
        tell(index, .membersChanged(members))
        if news { nodes[index].offersDue = now + .seconds(2) }
    }

    /// There is a connection, or a member that has one with both.
    private func isHeardOf(_ other: Int, by index: Int) -> Bool {
        line(index, other).isOpen
            || nodes.indices.contains { line(index, $0).isOpen && line($0, other).isOpen }
    }

    /// Who owns the key, as this node sees it: the nearest first.
    func owners(of key: Int, seenBy index: Int) -> [Int] {
        preference[key].filter { other in
            guard other < nodes.count else { return false }
            if other == index { return !nodes[index].isDraining }
            return nodes[index].isSeen[other] && !nodes[other].isDraining
        }
    }

    func candidates(for key: Int, at index: Int) -> [OwnerSearch.Candidate] {
        owners(of: key, seenBy: index).map {
            OwnerSearch.Candidate(nodes[$0].id, isReachable: $0 == index || line(index, $0).isOpen)
        }
    }

    func index(of id: NodeID) -> Int {
        places[id] ?? 0
    }
}
