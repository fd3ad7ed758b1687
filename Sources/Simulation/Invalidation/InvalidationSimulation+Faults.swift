import Cluster
import Ground
import Serving
import Tiers

/// Actions of clients and operators, and faults.
extension InvalidationSimulation {
    private var isLargeCluster: Bool { nodes.count > 20 }

    /// Performs a client's reads, edits and purges.
    mutating func stepClient() {
        eventQueue.schedule(.client, at: now + milliseconds(isLargeCluster ? 5...60 : 10...150))
        guard !isQuiescent else { return }
        let key = Int.random(in: keys.indices, using: &dice)
        switch Int.random(in: 0..<10, using: &dice) {
        case 0:
            oracle.update(key, at: now)
            eventQueue.schedule(.purge(key: key), at: now + milliseconds(0...40))
            for _ in 0..<3 { read(key, within: 0...120) }
        case 1: eventQueue.schedule(.purge(key: key), at: now)
        case 2...3:
            for _ in 0..<4 { read(key, within: 0...20) }
        default: read(key, within: 0...5)
        }
    }

    private mutating func read(_ key: Int, within range: ClosedRange<Int64>) {
        let index = Int.random(in: nodes.indices, using: &dice)
        eventQueue.schedule(.read(index, key: key), at: now + milliseconds(range))
    }

    /// Purges the key at a random node, on behalf of the operator or the origin.
    mutating func purge(_ key: Int) {
        let index = Int.random(in: nodes.indices, using: &dice)
        guard nodes[index].isUp, nodes[index].pausedUntil <= now else { return }
        _ = issue(anyPurge(of: key), at: index)
    }

    private mutating func anyPurge(of key: Int) -> Invalidation {
        let target: PurgeTarget
        switch Int.random(in: 0..<10, using: &dice) {
        case 0...5: target = .url(keys[key].urlName)
        case 6: target = .prefix(host: keys[key].host, path: keys[key].path)
        case 7: target = .prefix(host: keys[key].host, path: [])
        case 8: target = .tag(keys[key].tags[0])
        default: target = .everything
        }
        purgeNumber += 1
        let id = Array("p\(purgeNumber)".utf8)
        let mode = chance(oneIn: 3) ? Purge.Mode.soft : .hard
        let purge = Invalidation(id: id, .purge(Purge(mode, [target])))
        guard chance(oneIn: 20), var content = try? purge.content() else { return purge }
        // A purge of a later protocol version.
        content[2] = 9
        return Invalidation(content: content.span)
    }

    /// Issues a purge at a node and returns its number in the oracle; `nil` if it was refused.
    mutating func issue(_ invalidation: Invalidation, at index: Int) -> Int? {
        guard let purge = invalidation.purge else { return nil }
        var number: Int?
        var issued: RecordID?
        run(index) { exchange, now, dice, effects in
            let issuance = try? exchange.issue(
                invalidation, now: now, using: &dice, effects: &effects)
            if case .issued(let name) = issuance { issued = name }
        }
        guard let issued else { return nil }
        guard oracle.purgeNumbers[issued] == nil else {
            fail("number \(issued.number) of \(issued.stream) was given twice")
            return nil
        }
        let marks = purge.marks(at: .last)
        let covers = keys.map { key in
            marks.contains {
                $0.effect(on: key.url, tags: key.tags, version: .zero) != nil
            }
        }
        number = oracle.purges.count
        oracle.issued(
            InvalidationOracle.PurgeFacts(
                isHard: purge.mode == .hard, covers: covers, issuedAt: now, name: issued))
        if let number {
            watchedPurges.append(number)
            recordApplied(number, index)
            log("purge \(number) at \(index): \(purge.mode) of \(covers.map { $0 ? 1 : 0 })")
        }
        return number
    }

    /// Checks receipts of recent purges at random nodes.
    mutating func checkReceipts() {
        eventQueue.schedule(.checkReceipts, at: now + .milliseconds(50))
        if watchedPurges.count > 60 { watchedPurges.removeFirst(watchedPurges.count - 60) }
        guard let number = watchedPurges.randomElement(using: &dice) else { return }
        for number in [number, watchedPurges[watchedPurges.count - 1]] {
            let name = oracle.purges[number].name
            let index = Int.random(in: nodes.indices, using: &dice)
            guard let exchange = nodes[index].replication, nodes[index].pausedUntil <= now,
                var receipt = exchange.receipt(of: name)
            else { continue }
            if scenario.mutation == .receiptWithoutJoiners {
                let counted = exchange.voterConfiguration?.set.members ?? []
                receipt.confirmations.removeAll { !counted.contains($0.node) }
            }
            // The bound that the receipt promises applies to reads, whether or not the purge is
            // durable.
            if let majorityAt = receipt.majorityAt {
                let reported = nodes[index].clock.instant(of: majorityAt)
                oracle.recordReportedMajority(number, majorityAt: reported)
            }
            guard receipt.isConfirmedByAll else { continue }
            confirmed(number)
            watchedPurges.removeAll { $0 == number }
        }
    }

    /// Records a receipt that reports confirmation by all.
    ///
    /// The receipt does not cover a removed fenced node. Nor does it cover a node that no voter
    /// knows, or that every voter that knew it has lost for so long that it is no longer a member.
    mutating func confirmed(_ purge: Int) {
        let issuedAt = oracle.purges[purge].issuedAt
        let known = nodes.indices.filter { index in
            guard !oracle.isFormerVoter(nodes[index].id) else { return false }
            return nodes[index].roundContacts.contains { introduction in
                let other = nodes[introduction.by]
                guard introduction.at < issuedAt, other.run == introduction.run,
                    oracle.decidedSets.last?.contains(other.id) ?? false
                else { return false }
                return other.unseenSince[index].map { now - $0 < Self.forgetAfter } ?? true
            }
        }
        oracle.recordConfirmed(purge, known: Set(known.map { nodes[$0].process }), at: now)
    }

    // MARK: Faults

    /// Injects a random fault and schedules the next one.
    mutating func injectFault() {
        eventQueue.schedule(.fault, at: now + milliseconds(200...2_500))
        guard !isQuiescent else { return }
        let index = Int.random(in: nodes.indices, using: &dice)
        switch Int.random(in: 0..<24, using: &dice) {
        case 22...23: lag(index)
        case 0...4: crashAndRestart([index])
        case 5: crashAndRestart(nodes.indices.filter { _ in Bool.random(using: &dice) })
        case 6...8:
            let pause = milliseconds(chance(oneIn: 3) ? 2_000...6_000 : 50...2_000)
            // Its deferred events were scheduled for the end of the present pause.
            guard nodes[index].pausedUntil <= now else { return }
            nodes[index].pausedUntil = now + pause
            log("pause \(index) for \(pause.milliseconds) ms")
        case 9...12: partition(for: milliseconds(200...4_000))
        case 13: partition(for: milliseconds(6_500...12_000))
        case 14: originDownUntil = now + milliseconds(100...2_000)
        case 15: leave(index)
        case 18 where scenario.losses != .none: loseDirectory(index)
        case 19 where scenario.losses != .none: copyOrRestoreDirectory(index)
        case 16...17: removeConcurrently()
        default:
            let other = Int.random(in: nodes.indices, using: &dice)
            if other != index { disconnect(index, other) }
        }
    }

    /// Delays everything that a node receives, perhaps by more than its fence, in order.
    private mutating func lag(_ index: Int) {
        nodes[index].lag = milliseconds(500...4_000)
        nodes[index].laggingUntil = now + milliseconds(1_000...8_000)
        log("node \(index) hears all \(nodes[index].lag.milliseconds) ms late")
    }

    private mutating func crashAndRestart(_ indices: [Int]) {
        for index in indices where nodes[index].isUp {
            crash(index)
            let delay = chance(oneIn: 4) ? milliseconds(3_000...9_000) : milliseconds(20...3_000)
            eventQueue.schedule(.start(index), at: now + delay)
        }
    }

    /// Has operators at several nodes each remove another unreachable member.
    private mutating func removeConcurrently() {
        var begun: Set<NodeID> = []
        for index in nodes.indices where nodes[index].isUp && nodes[index].pausedUntil <= now {
            guard let exchange = nodes[index].replication,
                exchange.window.isCurrent(at: clock(index)),
                let set = exchange.voterConfiguration?.set
            else { continue }
            let away = set.members.filter { !isConnected($0, by: index) }
            guard let member = away.randomElement(using: &dice) else { continue }
            if forget([member], at: index) { begun.insert(member) }
        }
        if begun.count > 1 { cover(.concurrentRemoval) }
    }
}
