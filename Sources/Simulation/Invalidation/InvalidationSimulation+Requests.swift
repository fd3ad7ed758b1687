import Cluster
import Ground
import Serving
import Tiers

/// Requests of clients and peers, and the fetches that they wait for.
extension InvalidationSimulation {
    /// The permitted use of a stored entry at this instant.
    enum ReuseDecision {
        case fresh, stale, validate
    }

    /// Returns the effect of the node's marks on an entry; `nil` if none.
    func effect(on entry: SimulatedEntry, _ index: Int) -> InvalidationMark.Effect? {
        effect(on: entry.key, entry.invalidationVersion, index)
    }

    /// Returns the effect of marks on a response whose request began at version `begun`.
    private func effect(on key: Int, _ begun: InvalidationVersion, _ index: Int) -> InvalidationMark
        .Effect?
    {
        nodes[index].marks.effect(
            on: keys[key].url, tags: keys[key].tags, version: begun)
    }

    /// Returns true if the fence forbids the use of the entry.
    private func isFenced(_ entry: SimulatedEntry, _ index: Int) -> Bool {
        if case .revalidate = fencedUse(entry.validatedAt, index) { true } else { false }
    }

    /// Returns the fence's decision on an entry validated at `validatedAt`.
    func fencedUse(_ validatedAt: Instant, _ index: Int) -> FenceDecision {
        guard let exchange = nodes[index].replication else { return .revalidate(staleUntil: nil) }
        var window = exchange.window
        if scenario.mutation == .fenceAsTimer, nodes[index].isTimerFenceOpen {
            window.currentUntil = .distantFuture
        }
        if scenario.mutation == .catchUpFromOneMember, isCaughtUpWithOne(index) {
            window.currentUntil = .distantFuture
        }
        return FenceDecision.decide(
            now: clock(index), window: window, validatedAt: validatedAt, fence: Self.fence,
            staleIfError: nil)
    }

    private func isCaughtUpWithOne(_ index: Int) -> Bool {
        let table = nodes[index].replication?.memberStatuses(at: clock(index)) ?? []
        return table.contains { line in
            line.id != nodes[index].id && line.isVoter
                && (line.contactAge.map { $0 < Self.fence } ?? false)
        }
    }

    /// Returns true if the node counts as current.
    func isCurrent(_ index: Int) -> Bool { fencedUse(.zero - Self.fence, index) == .unrestricted }

    private func reuseDecision(of entry: SimulatedEntry, _ index: Int) -> ReuseDecision? {
        let effect = effect(on: entry, index)
        guard effect != .purged else { return nil }
        if isFenced(entry, index) { return .validate }
        let isFresh = clock(index) < entry.freshUntil
        if isFresh, effect == nil { return .fresh }
        // Dropped records may have been hard purges, so no staleness is allowed.
        guard entry.invalidationVersion >= nodes[index].validateBefore else { return .validate }
        let staleFrom = isFresh ? clock(index) : entry.freshUntil
        let until = staleFrom + keys[entry.key].staleWhileRevalidate
        return clock(index) < until ? .stale : .validate
    }

    /// Serves a request, or has it wait for a fetch.
    mutating func request(_ index: Int, _ key: Int, _ waiter: SimulatedFetch.Waiter) {
        if let entry = nodes[index].memory[key] {
            checkStamp(entry, index)
            switch reuseDecision(of: entry, index) {
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
        _ index: Int, _ key: Int, held: SimulatedEntry?, _ waiter: SimulatedFetch.Waiter
    ) {
        guard let number = joinable(index, key),
            nodes[index].fetches[number]?.join(waiter) == true
        else { return fetch(index, key, held: held, for: waiter) }
        guard waiter != .client else { return }
        deliver(index, number) { $0.peerJoined($1, effects: &$2) }
        if let fetch = nodes[index].fetches[number], fetch.lookup.isFetchingFromOrigin {
            sendFetching(fetch, index)
        }
    }

    private func joinable(_ index: Int, _ key: Int) -> UInt64? {
        guard let number = nodes[index].joinableFetches[key],
            let fetch = nodes[index].fetches[number]
        else {
            return nil
        }
        let mayJoin =
            scenario.mutation == .joiningOlderFetch
            || effect(on: key, fetch.version, index) == nil
        return mayJoin ? number : nil
    }

    // MARK: Fetches

    /// Starts a fetch, caused by the request of `waiter` if it is not `nil`.
    mutating func fetch(
        _ index: Int, _ key: Int, held: SimulatedEntry?, for waiter: SimulatedFetch.Waiter?,
        from source: (node: Int, path: TransferKind)? = nil
    ) {
        fetchNumber += 1
        let number = fetchNumber
        var fetch = SimulatedFetch(key: key, begun: nodes[index].invalidationVersion, waiter)
        fetch.storedEntry = held
        nodes[index].fetches[number] = fetch
        if let source { return ask(index, number, source.node, .probe, source.path) }
        nodes[index].joinableFetches[key] = number
        let asksDisk = held == nil && nodes[index].index[key] != nil
        deliver(index, number) { lookup, _, effects in
            lookup.started(readsDisk: asksDisk, effects: &effects)
        }
    }

    /// Reports an event to the lookup of a fetch and performs the effects.
    mutating func deliver(
        _ index: Int, _ number: UInt64,
        _ event: (inout Lookup, Instant, inout [LookupEffect]) -> Void
    ) {
        guard var fetch = nodes[index].fetches[number] else { return }
        var effects: [LookupEffect] = []
        event(&fetch.lookup, now, &effects)
        nodes[index].fetches[number] = fetch
        if let next = fetch.lookup.deadline {
            eventQueue.schedule(
                .lookupDeadline(index, run: nodes[index].run, fetch: number), at: max(next, now))
        }
        for effect in effects {
            switch effect {
            case .readDisk:
                eventQueue.schedule(
                    .promoted(index, run: nodes[index].run, fetch: number),
                    at: now + milliseconds(1...12))
            case .resolvePeers:
                let peers = isCurrent(index) ? peers(for: fetch.key, at: index) : nil
                deliver(index, number) { $0.peersResolved(peers, $1, effects: &$2) }
            case .sendPeerQuery(let node, let question):
                ask(
                    index, number, self.index(of: node), question,
                    question == .get ? .get : .probe)
            case .cancelPeerQuery(let node):
                let other = self.index(of: node)
                nodes[index].fetches[number]?.requests[other] = nil
            case .acceptPeerResponse(let node): acceptResponse(from: node, index, number)
            case .fetchFromOrigin: askOrigin(index, number)
            default: break
            }
        }
    }

    private func peers(for key: Int, at index: Int) -> Lookup.Peers {
        Lookup.Peers(
            me: nodes[index].id, preference: candidates(for: key, at: index), leaving: [])
    }

    /// Reports to a lookup that its deadline has come.
    mutating func deadlineReached(_ index: Int, _ number: UInt64) {
        deliver(index, number) { $0.deadlineReached($1, effects: &$2) }
    }

    /// Notifies the waiting peers that the origin is being queried.
    mutating func sendFetching(_ fetch: SimulatedFetch, _ index: Int) {
        for peer in fetch.peers {
            send(.response(peer.ask, .status(.fetching)), from: index, to: peer.node)
        }
    }

    /// Sends a query with the invalidations that its connection has not carried; its response has
    /// the version of the query.
    private mutating func ask(
        _ index: Int, _ number: UInt64, _ other: Int, _ question: OwnerSearch.QueryKind,
        _ path: TransferKind
    ) {
        guard let key = nodes[index].fetches[number]?.key else { return }
        requestNumber += 1
        var untold: UnsentInvalidations?
        let id = nodes[other].id
        run(index) { exchange, _, _, _ in
            untold = exchange.unsentInvalidations(to: id)
            if let untold { exchange.invalidationsSent(untold, to: id) }
        }
        let asked = SimulatedFetch.OutstandingRequest(
            number: requestNumber, path: path, version: nodes[index].invalidationVersion,
            sentAt: clock(index))
        nodes[index].fetches[number]?.requests[other] = asked
        guard let untold else { return }
        send(.request(requestNumber, question, key: key, untold), from: index, to: other)
    }

    private mutating func askOrigin(_ index: Int, _ number: UInt64) {
        guard let fetch = nodes[index].fetches[number], fetch.origin == nil else { return }
        // An entry that was purged hard in the meantime provides no validators.
        var held = fetch.storedEntry
        if let entry = held, effect(on: entry, index) == .purged { held = nil }
        nodes[index].fetches[number]?.storedEntry = held
        let asked = SimulatedFetch.OutstandingRequest(
            number: 0, path: held == nil ? .fetch : .revalidation,
            version: nodes[index].invalidationVersion,
            sentAt: clock(index))
        nodes[index].fetches[number]?.origin = asked
        sendFetching(fetch, index)
        let run = nodes[index].run
        if isQuiescent { log("node \(index) asks the origin for key \(fetch.key)") }
        eventQueue.schedule(
            .originRequested(index, run: run, fetch: number, etag: held?.contentVersion),
            at: now + milliseconds(2...30))
    }

    /// Handles a request at the origin and schedules its response.
    mutating func originRequested(_ index: Int, _ run: Int, _ number: UInt64, _ etag: Int?) {
        guard nodes[index].isUp, nodes[index].run == run,
            let key = nodes[index].fetches[number]?.key
        else { return }
        originFetches += 1
        if isQuiescent { quiescentFetches[key] += 1 }
        let slow = !isQuiescent && chance(oneIn: 10)
        eventQueue.schedule(
            .originResponded(index, run: run, fetch: number, originReply(key, etag)),
            at: now + (slow ? milliseconds(100...900) : milliseconds(2...60)))
    }

    private mutating func originReply(_ key: Int, _ etag: Int?) -> OriginReply {
        guard originDownUntil <= now else { return .failed }
        let version = oracle.version(of: key)
        let isShareable = isQuiescent || !chance(oneIn: 20)
        return .version(version, isValid: version == etag, isShareable: isShareable)
    }

    /// Handles the origin's response at the node.
    mutating func originResponded(_ index: Int, _ number: UInt64, _ reply: OriginReply) {
        guard let fetch = nodes[index].fetches[number], let request = fetch.origin else { return }
        guard case .version(let version, let isValid, let isShareable) = reply else {
            return originFailed(fetch, index, number)
        }
        var entry = SimulatedEntry(
            key: fetch.key, contentVersion: version, invalidationVersion: request.version,
            freshUntil: request.sentAt + keys[fetch.key].maxAge, validatedAt: request.sentAt)
        if isValid, fetch.storedEntry != nil, scenario.mutation == .lateValidationFreshens {
            entry.invalidationVersion = nodes[index].invalidationVersion
        }
        acceptResponse(entry, isShareable: isShareable, index, number)
    }

    /// Serves a stored entry in place of the failed origin, if permitted and not purged; peers are
    /// notified and decide themselves.
    private mutating func originFailed(
        _ fetch: SimulatedFetch, _ index: Int, _ number: UInt64
    ) {
        end(index, number)
        for peer in fetch.peers {
            send(.response(peer.ask, .status(.originFailed)), from: index, to: peer.node)
        }
        guard keys[fetch.key].isStaleIfError, let held = nodes[index].memory[fetch.key] else {
            return
        }
        for reader in fetch.readers where reader.waiter == .client {
            guard let use = reuseDecision(of: held, index), !isFenced(held, index),
                use == .fresh || held.invalidationVersion >= nodes[index].validateBefore
            else { return }
            cover(.staleIfError)
            serve(held, isFresh: use == .fresh, index, reader.waiter)
        }
    }

    /// Serves an entry found on disk, or revalidates it.
    mutating func storedEntryFound(_ entry: SimulatedEntry, _ index: Int, _ number: UInt64) {
        checkStamp(entry, index)
        switch reuseDecision(of: entry, index) {
        case .fresh: return deliverResponse(entry, isFresh: true, index, number)
        case .stale where nodes[index].fetches[number]?.readers.first?.waiter == .client:
            deliverResponse(entry, isFresh: false, index, number)
            if joinable(index, entry.key) == nil {
                fetch(index, entry.key, held: entry, for: nil)
            }
        case nil:
            deliver(index, number) { lookup, _, effects in lookup.diskMissed(effects: &effects) }
        case .stale, .validate:
            nodes[index].fetches[number]?.storedEntry = entry
            deliver(index, number) { lookup, _, effects in lookup.diskMissed(effects: &effects) }
        }
    }

    /// Accepts the response that a peer offered.
    mutating func acceptResponse(from node: NodeID, _ index: Int, _ number: UInt64) {
        let question = nodes[index].fetches[number]?.requests[self.index(of: node)]
        guard let entry = question?.held else { return }
        acceptResponse(entry, index, number)
    }

    /// Stores a response and serves it to the waiting requests, or restarts them.
    private mutating func acceptResponse(
        _ entry: SimulatedEntry, isShareable: Bool = true, _ index: Int, _ number: UInt64
    ) {
        if !isShareable {
            cover(.unshareable)
        } else if effect(on: entry, index) != .purged {
            store(entry, index)
        }
        deliverResponse(entry, isShareable: isShareable, isFresh: true, index, number)
    }

    /// Serves a response to the waiting requests, as far as the lookup permits.
    private mutating func deliverResponse(
        _ entry: SimulatedEntry, isShareable: Bool = true, isFresh: Bool, _ index: Int,
        _ number: UInt64
    ) {
        guard var fetch = nodes[index].fetches[number] else { return }
        end(index, number)
        var validity = Fetch.Validity(
            of: effect(on: entry, index), isExcluded: isFenced(entry, index),
            isShared: isShareable)
        if scenario.mutation == .joiningOlderFetch { validity = .valid }
        var effects: [LookupEffect] = []
        fetch.lookup.fetch.storedResponseUsed(
            isShared: isShareable, validity: validity, effects: &effects)
        for reader in fetch.readers {
            switch fetch.lookup.fetch.nextStep(for: reader.id, limit: 0) {
            case .finish where isShareable:
                serve(entry, isFresh: isFresh && validity == .valid, index, reader.waiter)
            case .finish: sendFetchYourself(reader.waiter, index)
            default: request(index, entry.key, reader.waiter)
            }
        }
    }

    /// Declines a peer's request because the response may not be shared.
    ///
    /// An unshareable response goes to the client that caused the fetch alone, and no guarantee
    /// about stored responses applies to it.
    private mutating func sendFetchYourself(_ waiter: SimulatedFetch.Waiter, _ index: Int) {
        guard case .peer(let other, let ask) = waiter else { return }
        send(.response(ask, .status(.declined)), from: index, to: other)
    }

    /// Ends a fetch, or excludes it from further use.
    mutating func end(_ index: Int, _ number: UInt64) {
        guard let key = nodes[index].fetches[number]?.key else { return }
        nodes[index].fetches[number] = nil
        if nodes[index].joinableFetches[key] == number { nodes[index].joinableFetches[key] = nil }
    }

}
