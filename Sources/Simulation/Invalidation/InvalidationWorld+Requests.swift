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

    func effect(on entry: SimulatedEntry, _ index: Int) -> DiskMark.Effect? {
        effect(on: entry.key, entry.stamp, index)
    }

    /// Of an answer to a request that began with `begun`.
    private func effect(on key: Int, _ begun: Stamp, _ index: Int) -> DiskMark.Effect? {
        nodes[index].marks.effect(
            on: keys[key].name, key: keys[key].url, tags: keys[key].tags, stamp: begun)
    }

    /// The fence does not let it be given.
    private func isExcluded(_ entry: SimulatedEntry, _ index: Int) -> Bool {
        if case .revalidate = fencedUse(entry.validatedAt, index) { true } else { false }
    }

    /// Whether the fence lets the entry be judged, now.
    func fencedUse(_ validatedAt: Instant, _ index: Int) -> FencedUse {
        guard let exchange = nodes[index].exchange else { return .revalidate(staleUntil: nil) }
        var window = exchange.window
        if plan.mutation.contains(.fenceAsTimer), nodes[index].flag {
            window.currentUntil = .distantFuture
        }
        if plan.mutation.contains(.catchUpFromOneMember), isCaughtUpWithOne(index) {
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
                if joinable(index, key) == nil { fetch(index, key, held: entry, waiters: []) }
                return
            case .stale, .validate: return join(index, key, held: entry, waiter)
            }
        }
        if nodes[index].index[key] != nil {
            if nodes[index].promoting[key] != nil {
                nodes[index].promoting[key]?.append(waiter)
            } else {
                nodes[index].promoting[key] = [waiter]
                timeline.plan(
                    .promoted(index, run: nodes[index].run, key: key),
                    at: now + milliseconds(1...12))
            }
            return
        }
        join(index, key, held: nil, waiter)
    }

    private func joinable(_ index: Int, _ key: Int) -> UInt64? {
        guard let number = nodes[index].current[key], let fill = nodes[index].fills[number] else {
            return nil
        }
        let mayJoin =
            plan.mutation.contains(.joiningOlderFetch)
            || effect(on: key, fill.begun, index) == nil
        return mayJoin ? number : nil
    }

    private mutating func join(
        _ index: Int, _ key: Int, held: SimulatedEntry?, _ waiter: SimulatedFill.Waiter
    ) {
        guard let number = joinable(index, key) else {
            return fetch(index, key, held: held, waiters: [waiter])
        }
        nodes[index].fills[number]?.waiters.append(waiter)
        guard case .peer(let other, let ask) = waiter else { return }
        // Whoever waits for a peer is the owner from now on, or two wait for each other.
        if nodes[index].fills[number]?.search != nil {
            search(index, number) { $0.becameOwner($1, effects: &$2) }
        }
        if nodes[index].fills[number]?.origin != nil {
            send(.reply(ask, .said(.fetching)), from: index, to: other)
        }
    }

    // MARK: Fetches

    mutating func fetch(
        _ index: Int, _ key: Int, held: SimulatedEntry?, waiters: [SimulatedFill.Waiter],
        from source: (node: Int, path: EntryPath)? = nil
    ) {
        fillNumber += 1
        let number = fillNumber
        var fill = SimulatedFill(key: key, begun: nodes[index].stamp)
        fill.waiters = waiters
        fill.isCaused = !waiters.isEmpty
        fill.held = held
        let isFenced = !isCurrent(index)
        let isForPeer = waiters.contains { $0 != .client }
        if source == nil, !isFenced {
            fill.search = OwnerSearch(
                me: nodes[index].id, preference: candidates(for: key, at: index), lookback: 3)
        }
        nodes[index].fills[number] = fill
        if source == nil { nodes[index].current[key] = number }
        if let source {
            ask(index, number, source.node, .probe, source.path)
        } else if fill.search != nil {
            search(index, number) {
                if isForPeer {
                    $0.beganAsOwner($1, effects: &$2)
                } else {
                    $0.began($1, effects: &$2)
                }
            }
        } else {
            askOrigin(index, number)
        }
    }

    /// Lets the search of a fill go on.
    mutating func search(
        _ index: Int, _ number: UInt64,
        _ event: (inout OwnerSearch, Instant, inout [OwnerSearch.Effect]) -> Void
    ) {
        guard var search = nodes[index].fills[number]?.search else { return }
        var effects: [OwnerSearch.Effect] = []
        event(&search, now, &effects)
        nodes[index].fills[number]?.search = search.hasEnded ? nil : search
        if let next = search.nextTick {
            timeline.plan(.search(index, run: nodes[index].run, fill: number), at: max(next, now))
        }
        for effect in effects {
            switch effect {
            case .ask(let node, let question):
                ask(
                    index, number, self.index(of: node), question,
                    question == .get ? .get : .probe)
            case .cancel(let node):
                let other = self.index(of: node)
                nodes[index].fills[number]?.questions[other] = nil
            case .take: break
            case .fetch: askOrigin(index, number)
            }
        }
    }

    mutating func searchTicked(_ index: Int, _ number: UInt64) {
        guard let next = nodes[index].fills[number]?.search?.nextTick, next <= now else { return }
        search(index, number) { $0.ticked($1, effects: &$2) }
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
        for case .peer(let other, let ask) in fill.waiters {
            send(.reply(ask, .said(.fetching)), from: index, to: other)
        }
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
        if isValid, fill.held != nil, plan.mutation.contains(.lateValidationFreshens) {
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
        for case .peer(let other, let ask) in fill.waiters {
            send(.reply(ask, .said(.originFailed)), from: index, to: other)
        }
        guard keys[fill.key].isStaleIfError, let held = nodes[index].memory[fill.key] else {
            return
        }
        for waiter in fill.waiters where waiter == .client {
            guard let use = use(of: held, index), !isExcluded(held, index),
                use == .fresh || held.stamp >= nodes[index].validateBefore
            else { return }
            reach(.staleIfError)
            serve(held, isFresh: use == .fresh, index, waiter)
        }
    }

    /// An answer has come: it is kept, and given to those who wait, or they begin anew.
    mutating func take(
        _ entry: SimulatedEntry, isShareable: Bool = true, _ index: Int, _ number: UInt64
    ) {
        guard let fill = nodes[index].fills[number] else { return }
        end(index, number)
        let standing = Fill.Standing(
            of: effect(on: entry, index), isExcluded: isExcluded(entry, index),
            isShared: isShareable)
        if !isShareable {
            reach(.unshareable)
        } else if effect(on: entry, index) != .dead {
            store(entry, index)
        }
        let isGiven = standing == .current || plan.mutation.contains(.joiningOlderFetch)
        for (place, waiter) in fill.waiters.enumerated() {
            if isGiven, isShareable {
                serve(entry, isFresh: true, index, waiter)
            } else if place == 0, fill.isCaused, !isShareable || standing == .overtaken {
                give(entry, isShareable: isShareable, index, waiter)
            } else {
                request(index, entry.key, waiter)
            }
        }
    }

    /// To the one who caused the fetch: what may not be shared is the origin's word to this client
    /// alone, and no stored answer that a purge is about.
    private mutating func give(
        _ entry: SimulatedEntry, isShareable: Bool, _ index: Int, _ waiter: SimulatedFill.Waiter
    ) {
        guard !isShareable else { return serve(entry, isFresh: false, index, waiter) }
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
