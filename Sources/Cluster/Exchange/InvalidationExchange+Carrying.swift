import Ground

/// From the log to the fence and back, until nothing more follows.
extension InvalidationExchange {
    mutating func tell(_ event: FenceEvent, _ now: Instant, _ dice: inout Dice) {
        keeper.handle(event, now: now, using: &dice)
    }

    /// Does all that follows, until nothing does.
    mutating func finish(
        _ now: Instant, _ dice: inout Dice, _ effects: inout [InvalidationEffect]
    ) {
        form(now, &dice)
        repeat {
            carry(now, &dice)
            followCount(now, &effects)
            followRecovery(&effects)
            number(now, &effects)
        } while !log.news.isEmpty
        put(now, &effects)
    }

    /// Tells the fence what the log has done.
    mutating func carry(_ now: Instant, _ dice: inout Dice) {
        while !log.news.isEmpty {
            let (applied, events) = log.takeNews()
            let positions = applied.sorted().compactMap { log.appliedPosition(of: $0) }
            if !positions.isEmpty { tell(.applied(positions), now, &dice) }
            for event in events { tell(event, now, &dice) }
        }
    }

    mutating func followCount(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        let members = keeper.counted.standing?.set.members ?? []
        log.counted(members, now: now, effects: &effects)
    }

    /// Whoever leaves a line for one that the operator had opened may lack what was durable in some
    /// other: all that it holds is asked about once.
    private mutating func followRecovery(_ effects: inout [InvalidationEffect]) {
        guard let next = keeper.counted.standing?.set.line.recovery else { return }
        let isTrusting = settings.fence.flaws.contains(.recoveryTrustsAll)
        if (recovery ?? 0) < next, !isTrusting { log.makeAllUnknown(effects: &effects) }
        recovery = next
    }

    /// Gives records of the count their numbers; what there is no room for waits.
    private mutating func number(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        while let record = keeper.news.records.first {
            let invalidation = Invalidation(id: [], .count(record))
            let issuance = try? log.issue(invalidation, now: now, effects: &effects)
            guard issuance != .busy else { return }
            keeper.news.records.removeFirst()
        }
    }

    /// Opens a cluster if this node follows none and it is for it to do so.
    private mutating func form(_ now: Instant, _ dice: inout Dice) {
        guard keeper.counted.standing == nil else { return }
        let others = Set(log.members.present + keeper.reached).sorted()
        let opens = formation.review(
            own: keeper.own, others: others.map { ($0, keeper.counted.views[$0]) })
        if opens { tell(.opens(byOrder: formation.rule == .ordered), now, &dice) }
    }

    /// What this node says of the count.
    func view(at now: Instant) -> CountView {
        var view = keeper.view(at: now).view
        if view.standing == nil { view.nominee = formation.nominee }
        return view
    }

    /// Appends what follows for others, and for the disk.
    private mutating func put(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        let counted = keeper.counted
        // What a line is left for is on disk before it is followed after a restart.
        if counted.hasJoined, !counted.hasMemory(of: remembered) {
            log.writes.add(.memory(counted.memory))
            remembered = counted
        }
        if let contradiction = counted.contradiction, contradiction != told {
            effects.append(.contradiction(contradiction))
        }
        told = counted.contradiction
        log.flush(now, &effects)
        let (view, members) = (view(at: now), log.recordedMembers)
        for (positions, nodes) in log.takeConfirmations() {
            effects.append(.send(.confirm(positions, members: members, view: view), to: nodes))
        }
        for question in keeper.news.questions.takeAll() {
            effects.append(.send(.round(question.round, digest: digest), to: question.members))
        }
        guard window != published else { return }
        published = window
        effects.append(.window(published))
    }
}
