import Cluster
import Ground
import Tiers

/// How nodes come, go, and are replaced: by the rules that nodes go by.
extension InvalidationWorld {
    static func address(_ index: Int) -> PeerAddress { PeerAddress(host: "n\(index)", port: 1) }

    /// Clients are let in.
    func isOpen(_ index: Int) -> Bool {
        guard nodes[index].departure != nil else { return nodes[index].isServing }
        return plan.mutation == .leavingBeforeClosing
    }

    func isReached(_ member: NodeID, by index: Int) -> Bool {
        let other = self.index(of: member)
        guard nodes[other].id == member else { return false }
        return other == index || line(index, other).isOpen
    }

    // MARK: Coming

    /// A node that starts looks for its cluster, and lets nobody in before.
    mutating func beginJoining(_ index: Int) {
        var settings = JoinWatch.Settings(hasSeeds: true, expects: plan.expects)
        settings.timeMax = .seconds(6)
        settings.membersTimeMax = .seconds(2)
        nodes[index].watch = JoinWatch(settings, now: clock(index))
        nodes[index].rule = nil
        (nodes[index].isServing, nodes[index].hasTable) = (false, false)
        let run = nodes[index].run
        let isStranger = !isCalm && nodes[index].storage.memory == nil && throwsOne(in: 8)
        nodes[index].strangerUntil = isStranger ? now + milliseconds(500...4_000) : .zero
        let delay = !isCalm && throwsOne(in: 4) ? milliseconds(200...3_000) : milliseconds(1...20)
        timeline.plan(.lookedUp(index, run: run), at: now + delay)
        timeline.plan(.look(index, run: run), at: now + .milliseconds(10))
    }

    /// The names of the seeds stand for all nodes of the beginning; for some only, for a while.
    mutating func lookedUp(_ index: Int) {
        let isWhole = isCalm || !throwsOne(in: 3)
        let seeds = (0..<plan.nodes).map(Self.address)
        nodes[index].watch?.lookedUp(isWhole ? seeds : [seeds[0]], isWhole: isWhole)
        for other in 0..<plan.nodes where !nodes[other].isUp {
            nodes[index].watch?.dialFailed(Self.address(other))
        }
        guard !isWhole else { return }
        timeline.plan(
            .lookedUp(index, run: nodes[index].run), at: now + milliseconds(200...1_500))
    }

    mutating func look(_ index: Int) {
        guard let watch = nodes[index].watch, let exchange = nodes[index].exchange else { return }
        let others = joinView(index)
        let isCounting = exchange.standing != nil
        var rule = watch.rule(others)
        let isSilent = clock(index) >= watch.startedAt + .seconds(1) && !others.hasTable
        if plan.mutation == .openingBySilence, isSilent { rule = .unanimous }
        if rule != nodes[index].rule {
            nodes[index].rule = rule
            tell(index, .mayForm(rule))
            let isOpener = nodes[index].exchange?.standing?.set.opener == nodes[index].id
            if !isCounting, isOpener { reach(.formedFromNothing) }
        }
        if !nodes[index].isServing,
            watch.isOver(others, isCounting: isCounting, now: clock(index))
        {
            nodes[index].isServing = true
            note("node \(index) serves")
        }
        guard !nodes[index].isServing || nodes[index].exchange?.standing == nil else { return }
        timeline.plan(.look(index, run: nodes[index].run), at: now + .milliseconds(40))
    }

    private func joinView(_ index: Int) -> JoinView {
        let others = nodes.indices.filter { $0 != index && nodes[$0].wasStarted }
        let members = others.map { other in
            let isConnected = line(index, other).isOpen
            return JoinView.Member(
                id: nodes[other].id, address: Self.address(other), isConnected: isConnected,
                isLive: isConnected || nodes[index].isSeen[other])
        }
        return JoinView(
            own: nodes[index].id, address: Self.address(index), members: members,
            isContested: false, hasTable: members.contains(where: \.isConnected))
    }

    // MARK: Going

    mutating func leave(_ index: Int) {
        guard nodes[index].isUp, nodes[index].departure == nil, nodes.filter(\.isUp).count > 2
        else { return }
        note("leave \(index)")
        nodes[index].isDraining = true
        offerAll(index, .drain)
        nodes[index].departure = (.closing, now)
        if plan.mutation == .leavingBeforeClosing { tell(index, .leaveRequested) }
        let run = nodes[index].run
        timeline.plan(.depart(index, run: run), at: now + milliseconds(0...1_500))
        // A container that goes may be gone, whatever it still has to say.
        guard throwsOne(in: 2) else { return }
        let delay = milliseconds(300...1_500)
        timeline.plan(.stop(index, run: run), at: now + delay)
        timeline.plan(.start(index), at: now + delay + milliseconds(50...8_000))
    }

    /// The time of a step is over, or what it is for is looked at again.
    mutating func depart(_ index: Int) {
        guard let (step, since) = nodes[index].departure else { return }
        let isLate = step.timeMax.map { now - since >= $0 } ?? true
        if step == .leaving, !isLate, nodes[index].exchange?.isLeaveOver == false {
            let run = nodes[index].run
            return timeline.plan(.depart(index, run: run), at: now + .milliseconds(20))
        }
        let next = step.next(isQuiet: !isAnswering(index))
        nodes[index].departure = (next, now)
        switch next {
        case .closing: break
        case .breakingOff:
            reach(.brokenOffAtLeave)
            breakOff(index)
        case .leaving: tell(index, .leaveRequested)
        case .parting:
            if nodes[index].exchange?.isCounted == false { reach(.leftInOrder) }
            nodes[index].hasLeft = true
            return part(index)
        case .gone:
            crash(index)
            return timeline.plan(.start(index), at: now + milliseconds(50...8_000))
        }
        timeline.plan(.depart(index, run: nodes[index].run), at: now + .milliseconds(20))
    }

    /// All know by now that it goes; it waits for those that have not said so, and may hear nothing
    /// more of them.
    private mutating func part(_ index: Int) {
        let wait = throwsOne(in: 2) ? milliseconds(20...100) : milliseconds(100...2_000)
        timeline.plan(.depart(index, run: nodes[index].run), at: now + wait)
        guard throwsOne(in: 2) else { return }
        for other in nodes.indices where other != index { block(index, other, for: wait) }
    }

    private func isAnswering(_ index: Int) -> Bool {
        nodes[index].fills.values.contains { fill in
            fill.readers.contains { $0.waiter == .client }
        }
    }

    private mutating func breakOff(_ index: Int) {
        for number in nodes[index].fills.keys {
            nodes[index].fills[number]?.leave { $0 == .client }
        }
    }

    // MARK: Losing what was kept

    /// The process ends, and its directory is gone.
    mutating func lose(_ index: Int) {
        crash(index)
        reach(.replaced)
        becomeAnother(index)
        nodes[index].storage = SimulatedStorage()
        let delay = isCalm ? milliseconds(1...50) : milliseconds(20...2_000)
        timeline.plan(.start(index), at: now + delay)
        guard plan.losses == .ofUnnamed, throwsOne(in: 2) else { return }
        timeline.plan(.operate, at: now + milliseconds(500...4_000))
    }

    /// From its next start on it is another member.
    private mutating func becomeAnother(_ index: Int) {
        let isNamed = plan.losses != .ofUnnamed
        let high = isNamed ? nodes[index].id.high : dice.next()
        nodes[index].id = NodeID(low: dice.next(), high: high)
        nodes[index].copy = nil
        nodes[index].unseenCopy = nil
        places[nodes[index].id] = index
        for other in nodes.indices { nodes[other].isSeen[index] = false }
        note("node \(index) is \(nodes[index].id) from now on")
    }

    /// The directory is copied, or put back as it was.
    mutating func restore(_ index: Int) {
        guard nodes[index].isUp else { return }
        guard let copy = nodes[index].copy else {
            nodes[index].copy = nodes[index].storage
            return note("the directory of \(index) is copied")
        }
        // Only who has seen the start since can tell that it is a copy; see <doc:Fence>.
        let isKnown = nodes.indices.allSatisfy { other in
            guard other != index else { return true }
            let seen = nodes[other].epochs[nodes[index].id]?.epoch ?? 0
            return nodes[other].isUp && seen > copy.epoch
        }
        guard isKnown else { return }
        crash(index)
        reach(.restoredCopy)
        nodes[index].storage = copy
        nodes[index].copy = nil
        nodes[index].unseenCopy = plan.mutation == .copyTaken ? nil : copy.epoch
        note("the directory of \(index) is as it was in epoch \(copy.epoch)")
        timeline.plan(.start(index), at: now + milliseconds(20...2_000))
    }

    /// Before the next start of `index`, after which nobody could tell any more that a directory is
    /// an older copy: whoever put it back takes it away again.
    mutating func takeAwayUnseenCopies(before index: Int) {
        for other in nodes.indices {
            guard let epoch = nodes[other].unseenCopy else { continue }
            if other != index || nodes[other].storage.epoch > epoch { lose(other) }
        }
    }

    /// A directory is copied, its node is started once more, and some are cut off from the others.
    mutating func copyAndCutOff() {
        let index = Int.random(in: nodes.indices, using: &dice)
        guard nodes[index].isUp else { return }
        nodes[index].copy = nodes[index].storage
        note("the directory of \(index) is copied")
        crash(index)
        timeline.plan(.start(index), at: now + .milliseconds(100))
        timeline.plan(.cutOff(from: index), at: now + .seconds(4))
    }

    /// What is purged now less than half of the nodes do not hear of.
    mutating func cutOff(from index: Int) {
        let others = nodes.indices.filter { $0 != index }.shuffled(using: &dice)
        let apart = others.prefix((nodes.count - 1) / 2)
        for one in apart {
            for other in nodes.indices where !apart.contains(other) {
                block(one, other, for: .seconds(14))
            }
        }
        purgeAll()
        timeline.plan(.putBack(index), at: now + .seconds(3))
    }

    /// The older copy starts where only those are who did not hear of the purges.
    mutating func putBack(_ index: Int) {
        for other in nodes.indices where other != index {
            let isApart = blocked[index * nodes.count + other] > now
            if isApart {
                blocked[index * nodes.count + other] = now
                blocked[other * nodes.count + index] = now
            } else {
                block(index, other, for: .seconds(11))
            }
        }
        restore(index)
    }

    private mutating func block(_ one: Int, _ other: Int, for interval: Interval) {
        blocked[one * nodes.count + other] = now + interval
        blocked[other * nodes.count + one] = now + interval
        disconnect(one, other)
    }

    private mutating func purgeAll() {
        for key in keys.indices {
            truth.edit(key, at: now)
            timeline.plan(.purge(key: key), at: now + .milliseconds(100))
            timeline.plan(.purge(key: key), at: now + .milliseconds(200))
        }
    }

    /// `other` knows that `index` was started more often than its directory does: that one gives it
    /// up.
    mutating func hasForgottenMore(_ index: Int, _ other: Int) -> Bool {
        let known = nodes[other].epochs[nodes[index].id] ?? (0, nodes[index].process)
        let isNew = known.process != nodes[index].process
        let isOlder = isNew && known.epoch >= nodes[index].epoch && nodes[index].isJoining
        guard isOlder, plan.mutation != .copyTaken else {
            if known.epoch <= nodes[index].epoch {
                nodes[other].epochs[nodes[index].id] = (nodes[index].epoch, nodes[index].process)
            }
            return false
        }
        note("node \(index) is an older copy of itself, as \(other) knows")
        crash(index)
        becomeAnother(index)
        // Everything that is kept is asked about once, and what was promised is another's.
        var storage = SimulatedStorage()
        storage.epoch = nodes[index].storage.epoch
        storage.entries = nodes[index].storage.entries
        storage.sequence = nodes[index].storage.sequence
        let stamp = Stamp(epoch: storage.epoch, count: .max)
        storage.marks = [Mark(.everything, isSoft: true, stamp: stamp)]
        storage.validateBefore = stamp
        nodes[index].storage = storage
        timeline.plan(.start(index), at: now + milliseconds(20...500))
        return true
    }

    // MARK: Operators

    /// All but one lose what they kept, after purges that this one has not heard of.
    mutating func loseMajority() {
        let left = Int.random(in: nodes.indices, using: &dice)
        note("all but \(left) are lost")
        for other in nodes.indices where other != left { block(left, other, for: .seconds(4)) }
        purgeAll()
        for other in nodes.indices where other != left && nodes[other].isUp {
            timeline.plan(.lost(other, run: nodes[other].run), at: now + .seconds(3))
        }
        timeline.plan(.operate, at: now + .seconds(5))
    }

    /// The operator, who knows which nodes run, mends what they cannot.
    mutating func operate() {
        guard !isHealthy else { return }
        if isCalm { timeline.plan(.operate, at: now + .seconds(4)) }
        let ids = Set(nodes.map(\.id))
        for index in nodes.indices where nodes[index].isUp {
            let members = nodes[index].exchange?.standing?.set.members ?? []
            let gone = members.filter { !ids.contains($0) }
            guard !gone.isEmpty, forget(gone, at: index) else { continue }
            note("the operator has \(index) forget \(gone)")
            return reach(.forgottenByOrder)
        }
        guard isCalm || plan.losses == .ofMajority else { return }
        let candidates = nodes.indices.filter { nodes[$0].exchange?.standing != nil }
        if isCalm, candidates.isEmpty, nodes[0].isUp { tell(0, .mayForm(.ordered)) }
        guard let index = candidates.first(where: { hasLostMajority($0, ids) }) else { return }
        note("the operator has the count begin anew with \(index)")
        reach(.recovered)
        tell(index, .recovers)
    }

    /// Has a node forget members; false if it refuses.
    @discardableResult
    mutating func forget(_ members: [NodeID], at index: Int) -> Bool {
        var isBegun = false
        run(index) { exchange, now, dice, effects in
            do throws(FenceKeeper.ForgetRefusal) {
                try exchange.forget(members, now: now, using: &dice, effects: &effects)
                isBegun = true
            } catch {
                isBegun = false
            }
        }
        return isBegun
    }

    private func hasLostMajority(_ index: Int, _ ids: Set<NodeID>) -> Bool {
        nodes[index].exchange?.standing.map { !$0.set.isMajority(Array(ids)) } ?? false
    }
}
