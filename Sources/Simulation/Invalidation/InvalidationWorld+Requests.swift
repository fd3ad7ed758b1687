import Cluster
import Ground
import Serving
import Tiers

/// Requests of clients and peers, and the fetches that they wait for.
extension InvalidationWorld {
    /// What may be done with a held entry at this instant.
    enum Use {
        case fresh, stale, validate
    }

    func effect(on entry: SimulatedEntry, _ index: Int) -> Mark.Effect? {
        effect(on: entry.key, entry.stamp, index)
    }

    /// Of an answer to a request that began with `begun`.
    private func effect(on key: Int, _ begun: Stamp, _ index: Int) -> Mark.Effect? {
        nodes[index].marks.effect(
            on: keys[key].url, tags: keys[key].tags, stamp: begun)
    }

    /// The fence does not let it be given.
    private func isExcluded(_ entry: SimulatedEntry, _ index: Int) -> Bool {
        if case .revalidate = fencedUse(entry.validatedAt, index) { true } else { false }
    }

    /// Whether the fence lets the entry be judged, now.
    func fencedUse(_ validatedAt: Instant, _ index: Int) -> FencedUse {
        guard let exchange = nodes[index].exchange else { return .revalidate(staleUntil: nil) }
        var window = exchange.window
        if plan.mutation == .fenceAsTimer, nodes[index].flag {
            window.currentUntil = .distantFuture
        }
        if plan.mutation == .catchUpFromOneMember, isCaughtUpWithOne(index) {
            window.currentUntil = .distantFuture
        }
        return FencedUse.decide(
            now: clock(index), window: window, validatedAt: validatedAt, fence: Self.fence,
            staleIfError: nil)
    }

    private func isCaughtUpWithOne(_ index: Int) -> Bool {
        let table = nodes[index].exchange?.table(at: clock(index)) ?? []
        return table.contains { line in
            line.id != nodes[index].id && line.isCounted
                && (line.contactAge.map { $0 < Self.fence } ?? false)
        }
    }

    func isCurrent(_ index: Int) -> Bool { fencedUse(.zero - Self.fence, index) == .asAlways }

    private func use(of entry: SimulatedEntry, _ index: Int) -> Use? {
        let effect = effect(on: entry, index)
        guard effect != .dead else { return nil }
        if isExcluded(entry, index) { return .validate }
        let isFresh = clock(index) < entry.freshUntil
        if isFresh, effect == nil { return .fresh }
        // What may have been hard in records that are gone is granted nothing.
        guard entry.stamp >= nodes[index].validateBefore else { return .validate }
        let staleFrom = isFresh ? clock(index) : entry.freshUntil
        let until = staleFrom + keys[entry.key].staleWhileRevalidate
        return clock(index) < until ? .stale : .validate
    }

    /// A request has come: it is served, or it waits.
    mutating func request(_ index: Int, _ key: Int, _ waiter: SimulatedFill.Waiter) {
        if let entry = nodes[index].memory[key] {
            checkStamp(entry, index)
            switch use(of: entry, index) {
            case nil: nodes[index].memory[key] = nil
            case .fresh: return serve(entry, isFresh: true, index, waiter)
            case .stale where waiter == .client:
                serve(entry, isFresh: false, index, waiter)
                if joinable(index, key) == nil { fetch(index, key, held: entry, for: nil) }
                return
            case .stale, .validate: return join(index, key, held: entry, waiter)
            }
        }
        join(index, key, held: nil, waiter)
    }

    private mutating func join(
        _ index: Int, _ key: Int, held: SimulatedEntry?, _ waiter: SimulatedFill.Waiter
    ) {
        guard let number = joinable(index, key),
            nodes[index].fills[number]?.join(waiter) == true
        else { return fetch(index, key, held: held, for: waiter) }
        guard waiter != .client else { return }
        tell(index, number) { $0.waitedForByPeer($1, effects: &$2) }
        if let fill = nodes[index].fills[number], fill.lookup.isAskingOrigin {
            sayFetching(fill, index)
        }
    }

    private func joinable(_ index: Int, _ key: Int) -> UInt64? {
        guard let number = nodes[index].current[key], let fill = nodes[index].fills[number] else {
            return nil
        }
        let mayJoin =
            plan.mutation == .joiningOlderFetch
            || effect(on: key, fill.begun, index) == nil
        return mayJoin ? number : nil
    }

    // MARK: Fetches

    /// A request of `waiter` causes a fetch, or nobody's does.
    mutating func fetch(
        _ index: Int, _ key: Int, held: SimulatedEntry?, for waiter: SimulatedFill.Waiter?,
        from source: (node: Int, path: EntryPath)? = nil
    ) {
        fillNumber += 1
        let number = fillNumber
        var fill = SimulatedFill(key: key, begun: nodes[index].stamp, waiter)
        fill.held = held
        nodes[index].fills[number] = fill
        if let source { return ask(index, number, source.node, .probe, source.path) }
        nodes[index].current[key] = number
        let asksDisk = held == nil && nodes[index].index[key] != nil
        tell(index, number) { lookup, _, effects in
            lookup.began(asksDisk: asksDisk, effects: &effects)
        }
    }

    /// Tells the lookup of a fill, and does what it wants.
    mutating func tell(
        _ index: Int, _ number: UInt64,
        _ event: (inout Lookup, Instant, inout [LookupEffect]) -> Void
    ) {
        guard var fill = nodes[index].fills[number] else { return }
        var effects: [LookupEffect] = []
        event(&fill.lookup, now, &effects)
        nodes[index].fills[number] = fill
        if let next = fill.lookup.deadline {
            timeline.plan(.lookup(index, run: nodes[index].run, fill: number), at: max(next, now))
        }
        for effect in effects {
            switch effect {
            case .readDisk:
                timeline.plan(
                    .promoted(index, run: nodes[index].run, fill: number),
                    at: now + milliseconds(1...12))
            case .lookBeyond:
                let peers = isCurrent(index) ? peers(for: fill.key, at: index) : nil
                tell(index, number) { $0.wentBeyond(peers, $1, effects: &$2) }
            case .ask(let node, let question):
                ask(
                    index, number, self.index(of: node), question,
                    question == .get ? .get : .probe)
            case .cancel(let node):
                let other = self.index(of: node)
                nodes[index].fills[number]?.questions[other] = nil
            case .take(let node): take(from: node, index, number)
            case .askOrigin: askOrigin(index, number)
            default: break
            }
        }
    }

    private func peers(for key: Int, at index: Int) -> Lookup.Peers {
        Lookup.Peers(
            me: nodes[index].id, preference: candidates(for: key, at: index), leaving: [])
    }

    mutating func deadlineReached(_ index: Int, _ number: UInt64) {
        tell(index, number) { $0.deadlineReached($1, effects: &$2) }
    }

    /// Says to the peers that wait that the origin is asked for them.
    mutating func sayFetching(_ fill: SimulatedFill, _ index: Int) {
        for peer in fill.peers {
            send(.reply(peer.ask, .said(.fetching)), from: index, to: peer.node)
        }
    }

    /// A question carries what its connection was not told, and its answer is of its stamp.
    private mutating func ask(
        _ index: Int, _ number: UInt64, _ other: Int, _ question: OwnerSearch.Question,
        _ path: EntryPath
    ) {
        guard let key = nodes[index].fills[number]?.key else { return }
        askNumber += 1
        var untold: Untold?
        let id = nodes[other].id
        run(index) { exchange, _, _, _ in
            untold = exchange.untold(to: id)
            if let untold { exchange.told(untold, to: id) }
        }
        let asked = SimulatedFill.Question(
            ask: askNumber, path: path, stamp: nodes[index].stamp, sentAt: clock(index))
        nodes[index].fills[number]?.questions[other] = asked
        guard let untold else { return }
        send(.ask(askNumber, question, key: key, untold), from: index, to: other)
    }

    private mutating func askOrigin(_ index: Int, _ number: UInt64) {
        guard let fill = nodes[index].fills[number], fill.origin == nil else { return }
        // Validators of what was invalidated hard in the meantime are gone.
        var held = fill.held
        if let entry = held, effect(on: entry, index) == .dead { held = nil }
        nodes[index].fills[number]?.held = held
        let asked = SimulatedFill.Question(
            ask: 0, path: held == nil ? .fetch : .revalidation, stamp: nodes[index].stamp,
            sentAt: clock(index))
        nodes[index].fills[number]?.origin = asked
        sayFetching(fill, index)
        let run = nodes[index].run
        if isCalm { note("node \(index) asks the origin for key \(fill.key)") }
        timeline.plan(
            .originAsked(index, run: run, fill: number, etag: held?.version),
            at: now + milliseconds(2...30))
    }

    mutating func originAsked(_ index: Int, _ run: Int, _ number: UInt64, _ etag: Int?) {
        guard nodes[index].isUp, nodes[index].run == run,
            let key = nodes[index].fills[number]?.key
        else { return }
        originFetches += 1
        if isCalm { calmFetches[key] += 1 }
        let slow = !isCalm && throwsOne(in: 10)
        timeline.plan(
            .originAnswered(index, run: run, fill: number, originReply(key, etag)),
            at: now + (slow ? milliseconds(100...900) : milliseconds(2...60)))
    }

    private mutating func originReply(_ key: Int, _ etag: Int?) -> OriginReply {
        guard isOriginDown <= now else { return .failed }
        let version = truth.version(of: key)
        let isShareable = isCalm || !throwsOne(in: 20)
        return .version(version, isValid: version == etag, isShareable: isShareable)
    }

    mutating func originAnswered(_ index: Int, _ number: UInt64, _ reply: OriginReply) {
        guard let fill = nodes[index].fills[number], let request = fill.origin else { return }
        guard case .version(let version, let isValid, let isShareable) = reply else {
            return originFailed(fill, index, number)
        }
        var entry = SimulatedEntry(
            key: fill.key, version: version, stamp: request.stamp,
            freshUntil: request.sentAt + keys[fill.key].maxAge, validatedAt: request.sentAt)
        if isValid, fill.held != nil, plan.mutation == .lateValidationFreshens {
            entry.stamp = nodes[index].stamp
        }
        take(entry, isShareable: isShareable, index, number)
    }

    /// What is held may stand in for the origin, where it is granted and no purge forbids it; peers
    /// are told, and look for themselves.
    private mutating func originFailed(
        _ fill: SimulatedFill, _ index: Int, _ number: UInt64
    ) {
        end(index, number)
        for peer in fill.peers {
            send(.reply(peer.ask, .said(.originFailed)), from: index, to: peer.node)
        }
        guard keys[fill.key].isStaleIfError, let held = nodes[index].memory[fill.key] else {
            return
        }
        for reader in fill.readers where reader.waiter == .client {
            guard let use = use(of: held, index), !isExcluded(held, index),
                use == .fresh || held.stamp >= nodes[index].validateBefore
            else { return }
            reach(.staleIfError)
            serve(held, isFresh: use == .fresh, index, reader.waiter)
        }
    }

    /// The disk has an answer: it is given, or the origin is asked about it.
    mutating func found(_ entry: SimulatedEntry, _ index: Int, _ number: UInt64) {
        checkStamp(entry, index)
        switch use(of: entry, index) {
        case .fresh: return give(entry, isFresh: true, index, number)
        case .stale where nodes[index].fills[number]?.readers.first?.waiter == .client:
            give(entry, isFresh: false, index, number)
            if joinable(index, entry.key) == nil {
                fetch(index, entry.key, held: entry, for: nil)
            }
        case nil: tell(index, number) { lookup, _, effects in lookup.absent(effects: &effects) }
        case .stale, .validate:
            nodes[index].fills[number]?.held = entry
            tell(index, number) { lookup, _, effects in lookup.absent(effects: &effects) }
        }
    }

    /// What a peer would give is the answer.
    mutating func take(from node: NodeID, _ index: Int, _ number: UInt64) {
        let question = nodes[index].fills[number]?.questions[self.index(of: node)]
        guard let entry = question?.held else { return }
        take(entry, index, number)
    }

    /// An answer has come: it is kept, and given to those who wait, or they begin anew.
    private mutating func take(
        _ entry: SimulatedEntry, isShareable: Bool = true, _ index: Int, _ number: UInt64
    ) {
        if !isShareable {
            reach(.unshareable)
        } else if effect(on: entry, index) != .dead {
            store(entry, index)
        }
        give(entry, isShareable: isShareable, isFresh: true, index, number)
    }

    /// Who waits is given the answer, as far as the lookup lets them have it.
    private mutating func give(
        _ entry: SimulatedEntry, isShareable: Bool = true, isFresh: Bool, _ index: Int,
        _ number: UInt64
    ) {
        guard var fill = nodes[index].fills[number] else { return }
        end(index, number)
        var standing = Fill.Standing(
            of: effect(on: entry, index), isExcluded: isExcluded(entry, index),
            isShared: isShareable)
        if plan.mutation == .joiningOlderFetch { standing = .current }
        var effects: [LookupEffect] = []
        fill.lookup.fill.confirmed(
            isShared: isShareable, standing: standing, effects: &effects)
        for reader in fill.readers {
            switch fill.lookup.fill.next(for: reader.id, limit: 0) {
            case .finish where isShareable:
                serve(entry, isFresh: isFresh && standing == .current, index, reader.waiter)
            case .finish: refuse(reader.waiter, index)
            default: request(index, entry.key, reader.waiter)
            }
        }
    }

    /// What may not be shared is the origin's word to the one client who caused the fetch, and no
    /// stored answer that a purge is about.
    private mutating func refuse(_ waiter: SimulatedFill.Waiter, _ index: Int) {
        guard case .peer(let other, let ask) = waiter else { return }
        send(.reply(ask, .said(.fetchYourself)), from: index, to: other)
    }

    /// The fetch is over, or nobody may have it any more.
    mutating func end(_ index: Int, _ number: UInt64) {
        guard let key = nodes[index].fills[number]?.key else { return }
        nodes[index].fills[number] = nil
        if nodes[index].current[key] == number { nodes[index].current[key] = nil }
    }

    // MARK: Serving

    /// The instant at which it is decided that a request is served.
    private mutating func serve(
        _ entry: SimulatedEntry, isFresh: Bool, _ index: Int, _ waiter: SimulatedFill.Waiter
    ) {
        guard case .peer(let other, let ask) = waiter else {
            return check(entry, isFresh: isFresh, index)
        }
        let reply = Reply.held(
            version: entry.version, freshFor: entry.freshUntil - clock(index),
            validationAge: clock(index) - entry.validatedAt)
        send(.reply(ask, reply), from: index, to: other)
    }

    private mutating func check(_ entry: SimulatedEntry, isFresh: Bool, _ index: Int) {
        reads += 1
        if isCalm { calmReads[entry.key] += 1 }
        trace.note(UInt64(entry.key) << 32 | UInt64(entry.version))
        let node = nodes[index]
        let isCurrent = node.exchange?.window.isCurrent(at: clock(index)) ?? false
        let isCounted = truth.line.last?.contains(node.id) ?? false
        let reader = InvalidationTruth.Reader(
            process: node.process, applied: node.applied, isBound: isCurrent || isCounted)
        let fault = truth.fault(
            key: entry.key, version: entry.version, isFresh: isFresh, by: reader, at: now)
        guard let fault else { return }
        let current = truth.version(of: entry.key)
        fail(
            "node \(index) served key \(entry.key) version \(entry.version) of \(current), "
                + "stamp \(entry.stamp.epoch).\(entry.stamp.count), current \(isCurrent), "
                + "counted \(isCounted): \(fault)")
    }

    /// Whatever is applied next must cover what is held.
    func isPurgeable(_ entry: SimulatedEntry, _ index: Int) -> Bool {
        entry.stamp <= nodes[index].stamp
    }

    private mutating func checkStamp(_ entry: SimulatedEntry, _ index: Int) {
        if !isPurgeable(entry, index) {
            fail("node \(index) holds key \(entry.key), which can no longer be purged")
        }
    }
}
