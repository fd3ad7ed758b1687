import Cluster
import Ground

/// The end of a run without faults.
///
/// The cluster must become healthy, and edit, purge and refetch must behave as users of a detail
/// page expect.
extension InvalidationSimulation {
    /// Maximum time after the faults until all nodes are voters, current and in agreement.
    private static let recoveryMax = Interval.seconds(40)

    /// Runs the whole simulation.
    package mutating func run() {
        play(until: end)
        guard violation == nil else { return }
        quiesce()
        guard violation == nil else { return }
        for key in 0..<3 { refetch(key, isHard: key != 1) }
        if scenario.losses == .namedNodes, nodes.count > 2 { replaceAll() }
    }

    /// Replaces one node after the other by a new one of the same name; no other node may be
    /// fenced.
    private mutating func replaceAll() {
        for index in nodes.indices where violation == nil {
            loseDirectory(index)
            let limit = now + .seconds(5)
            repeat {
                play(until: now + .milliseconds(5))
                for other in nodes.indices where other != index && !isCurrent(other) {
                    fail("node \(other) is fenced while \(index) is replaced")
                }
                if now > limit { fail("who replaces \(index) is not counted: \(healthProblems)") }
            } while violation == nil && !isHealthy
        }
    }

    private mutating func quiesce() {
        log("calm")
        isQuiescent = true
        originDownUntil = now
        for way in blocked.indices { blocked[way] = .zero }
        for index in nodes.indices {
            nodes[index].isDraining = false
            if !nodes[index].isUp { start(index) }
        }
        for one in nodes.indices {
            for other in 0..<one where !link(one, other).isOpen {
                eventQueue.schedule(.reconnect(one, other), at: now)
            }
        }
        eventQueue.schedule(.runOperator, at: now + .seconds(10))
        let limit = now + Self.recoveryMax
        // By then pending leaves are complete, and the events of paused processes are handled.
        play(until: now + .seconds(7))
        while violation == nil, !isHealthy {
            for index in nodes.indices where !nodes[index].isUp { start(index) }
            guard now < limit else { return fail("no healthy cluster: \(healthProblems)") }
            play(until: now + .milliseconds(100))
        }
    }

    var isHealthy: Bool { healthProblems.isEmpty }

    private var healthProblems: [String] {
        var found: [String] = []
        let positions = nodes[0].replication?.syncedPositions
        for index in nodes.indices {
            guard let exchange = nodes[index].replication else {
                found.append("\(index) is down")
                continue
            }
            if !acceptsClients(index) { found.append("\(index) serves nobody") }
            if !exchange.window.isCurrent(at: clock(index)) {
                found.append("\(index) is fenced")
            }
            if exchange.voterConfiguration?.set.members.count != nodes.count {
                found.append(
                    "\(index) counts \(exchange.voterConfiguration?.set.members.count ?? 0)")
            }
            // Nodes retire the streams of dead processes at different times.
            let known = exchange.syncedPositions.filter { position in
                positions?.contains { $0.process == position.process } ?? false
            }
            let agrees = known.allSatisfy { position in
                positions?.contains(position) ?? false
            }
            if !agrees { found.append("\(index) knows other positions") }
            let isLonely = nodes.indices.contains { $0 != index && !nodes[index].visibleNodes[$0] }
            if isLonely { found.append("\(index) does not see all") }
        }
        return found
    }

    /// Edits and purges a key, awaits the receipt, then reads at every node at once; the origin
    /// must get one request.
    private mutating func refetch(_ key: Int, isHard: Bool) {
        for index in nodes.indices { eventQueue.schedule(.read(index, key: key), at: now) }
        play(until: now + .seconds(1))
        // An earlier request may still wait for a peer that was cut off, and would be counted.
        let end = now + .seconds(20)
        while nodes.contains(where: { $0.fetches.values.contains { $0.key == key } }) {
            guard now < end, violation == nil else { return fail("a read waits for ever") }
            play(until: now + .milliseconds(5))
        }
        oracle.update(key, at: now)
        let issuer = Int.random(in: nodes.indices, using: &dice)
        let purge = Purge(isHard ? .hard : .soft, [.url(keys[key].urlName)])
        let id = Array("calm \(key)".utf8)
        guard violation == nil,
            let number = issue(Invalidation(id: id, .purge(purge)), at: issuer)
        else { return fail("a purge was refused in calm") }
        let name = oracle.purges[number].name
        // For one fence after a removal an unknown node may be current.
        let limit = now + Self.fence + .seconds(2)
        while nodes[issuer].replication?.receipt(of: name)?.isConfirmedByAll != true {
            guard now < limit, violation == nil else { return fail("no receipt in calm") }
            play(until: now + .milliseconds(5))
        }
        confirmed(number)
        quiescentFetches[key] = 0
        quiescentReads[key] = 0
        let floors = floorsApplied
        for index in nodes.indices { eventQueue.schedule(.read(index, key: key), at: now) }
        play(until: now + .seconds(1))
        if quiescentReads[key] != nodes.count {
            fail("\(quiescentReads[key]) reads were served, of \(nodes.count)")
        }
        // A gap of a dead process requires one revalidation of everything.
        if quiescentFetches[key] != 1, floorsApplied == floors {
            fail(
                "\(quiescentFetches[key]) origin fetches after one \(purge.mode) purge of "
                    + "key \(key)"
            )
        }
    }
}
