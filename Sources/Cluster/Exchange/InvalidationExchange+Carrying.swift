import Ground

/// From the log to the fence and back, until nothing more follows.
extension InvalidationExchange {
    mutating func tell(_ event: FenceEvent, _ now: Instant, _ dice: inout Dice) {
        keeper.handle(event, now: now, using: &dice, effects: &asks)
    }

    /// Does all that follows, until nothing does.
    mutating func finish(
        _ now: Instant, _ dice: inout Dice, _ effects: inout [ExchangeEffect],
        isStart: Bool = false
    ) {
        form(now, &dice)
        repeat {
            carry(now, &dice)
            followCount(now)
            followRecovery()
            number(now)
        } while carried < wanted.count
        put(now, &effects, isStart: isStart)
    }

    /// Tells the fence what the log has done.
    mutating func carry(_ now: Instant, _ dice: inout Dice) {
        while carried < wanted.count {
            var applied: Set<ProcessID> = []
            var events: [FenceEvent] = []
            for effect in wanted[carried...] {
                switch effect {
                case .apply(let record, _):
                    applied.insert(record.name.stream)
                    guard record.name.stream != log.process else { continue }
                    if let count = record.countRecord { events.append(.recorded(count)) }
                case .applyFloors(let positions, _): applied.formUnion(positions.map(\.process))
                case .write(let writes): batch = writes
                case .retire(let position): events.append(.retired(position))
                case .forget(let process): events.append(.forgotten(process))
                case .contradiction(let name):
                    let position = StreamPosition(process: name.stream, count: name.number)
                    events.append(.contradicted(position))
                case .issued, .push, .confirm, .tell, .ask, .settled, .drop: continue
                }
            }
            carried = wanted.count
            let positions = applied.sorted().compactMap { log.appliedPosition(of: $0) }
            if !positions.isEmpty { tell(.applied(positions), now, &dice) }
            for event in events { tell(event, now, &dice) }
        }
    }

    mutating func followCount(_ now: Instant) {
        let members = keeper.counted.standing?.set.members ?? []
        if company.count(members, now: now) { review(now) }
    }

    /// Whoever leaves a line for one that the operator had opened may lack what was durable in some
    /// other: all that it holds is asked about once.
    private mutating func followRecovery() {
        guard let next = keeper.counted.standing?.set.line.recovery else { return }
        let isTrusting = settings.fence.flaws.contains(.recoveryTrustsAll)
        if (recovery ?? 0) < next, !isTrusting { log.makeAllUnknown(effects: &wanted) }
        recovery = next
    }

    mutating func review(_ now: Instant) {
        let members = company.review(process: log.process, now: now)
        log.membersChanged(members, gone: company.gone.sorted(), now: now, effects: &wanted)
    }

    /// Gives records of the count their numbers; what there is no room for waits.
    private mutating func number(_ now: Instant) {
        for case .issue(let record) in asks { count.append(record) }
        asks.removeAll { if case .issue = $0 { true } else { false } }
        while let record = count.first {
            let invalidation = Invalidation(id: [], .count(record))
            let issuance = try? log.issue(invalidation, now: now, effects: &wanted)
            guard issuance != .busy else { return }
            count.removeFirst()
        }
    }

    /// Opens a cluster if this node follows none and it is for it to do so.
    private mutating func form(_ now: Instant, _ dice: inout Dice) {
        guard keeper.counted.standing == nil else { return }
        let others = Set(company.present + keeper.reached).sorted()
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

    /// Appends what is to be done, in order.
    private mutating func put(
        _ now: Instant, _ effects: inout [ExchangeEffect], isStart: Bool
    ) {
        let counted = keeper.counted
        // What a line is left for is on disk before it is followed after a restart.
        if counted.hasJoined, isStart || !counted.hasMemory(of: remembered) {
            effects.append(.remember(counted.memory))
            remembered = counted
        }
        if let contradiction = counted.contradiction, contradiction != told {
            effects.append(.contradiction(contradiction))
        }
        told = counted.contradiction
        let view = view(at: now)
        for effect in wanted { Self.put(effect, view, &effects) }
        for case .ask(let members, let round) in asks {
            let digest = digest
            effects += members.map { .send(.round(round, digest: digest), to: $0) }
        }
        wanted.removeAll()
        carried = 0
        asks.removeAll()
        guard isStart || window != published else { return }
        published = window
        effects.append(.window(published))
    }

    private static func put(
        _ effect: InvalidationEffect, _ view: CountView, _ effects: inout [ExchangeEffect]
    ) {
        switch effect {
        case .apply(let record, let count): effects.append(.apply(record, count: count))
        case .applyFloors(let floors, let count):
            effects.append(.applyFloors(floors, count: count))
        case .write(let writes): effects.append(.write(writes))
        case .issued(let number): effects.append(.issued(upTo: number))
        case .push(let records, let nodes):
            effects += nodes.map { .send(.push(records), to: $0) }
        case .confirm(let positions, let members, let nodes):
            let message = InvalidationMessage.confirm(positions, members: members, view: view)
            effects += nodes.map { .send(message, to: $0) }
        case .tell(let positions, let node): effects.append(.send(.told(positions), to: node))
        case .ask(let ranges, let node): effects.append(.send(.ask(ranges), to: node))
        case .settled(let number): effects.append(.settled(upTo: number))
        case .drop(let position): effects.append(.drop(position))
        case .retire(let position): effects.append(.retire(position))
        case .forget(let process): effects.append(.forget(process))
        // The fence has made one of its own of it.
        case .contradiction: break
        }
    }
}

extension InvalidationRecord {
    /// What it says of the count; nil if that is not what it is for.
    var countRecord: CountRecord? {
        guard Invalidation.isCount(content), case .count(let record) = invalidation.action else {
            return nil
        }
        return record
    }
}
