import Cluster
import Ground
import Serving
import Tiers

/// Fetches from peers and the origin, and the requests of peers.
extension SimulatedCacheNode {
    /// Starts a fetch, caused by the request of `waiter` if it is not `nil`.
    ///
    /// `held` is the entry to revalidate, if any. `source` is the peer whose offer is accepted;
    /// `nil` for a lookup among the owners and the origin, which further requests may join.
    mutating func fetch(
        _ key: Int, held: SimulatedEntry?, for waiter: SimulatedFetch.Waiter?,
        from source: (node: Int, path: TransferKind)? = nil, _ world: inout SimulatedWorld
    ) {
        let number = world.nextNumber()
        var fetch = SimulatedFetch(key: key, begun: replica.invalidationVersion, waiter)
        fetch.storedEntry = held
        fetches.add(fetch, number, isJoinable: source == nil)
        if let source { return ask(number, source.node, .probe, source.path, &world) }
        let asksDisk = held == nil && cache.index[key] != nil
        advance(number, &world) { lookup, _, effects in
            lookup.started(readsDisk: asksDisk, effects: &effects)
        }
    }

    /// Reports an event to the lookup of a fetch that has not ended, and performs the effects.
    mutating func advance(
        _ number: UInt64, _ world: inout SimulatedWorld,
        _ event: (inout Lookup, Instant, inout [LookupEffect]) -> Void
    ) {
        guard var fetch = fetches[number] else { return }
        var effects: [LookupEffect] = []
        event(&fetch.lookup, world.now, &effects)
        fetches[number] = fetch
        if let next = fetch.lookup.deadline {
            world.schedule(
                .lookupDeadline(index, run: replica.run, fetch: number), at: max(next, world.now))
        }
        for effect in effects {
            switch effect {
            case .readDisk:
                world.schedule(
                    .promoted(index, run: replica.run, fetch: number),
                    after: world.milliseconds(1...12))
            case .resolvePeers:
                let isCurrent = replica.isCurrent(at: world.now)
                let peers = isCurrent ? view.lookupPeers(for: fetch.key, world) : nil
                advance(number, &world) { $0.peersResolved(peers, $1, effects: &$2) }
            case .sendPeerQuery(let node, let question):
                let path: TransferKind = question == .get ? .get : .probe
                ask(number, world.index(of: node), question, path, &world)
            case .cancelPeerQuery(let node):
                fetches[number]?.requests[world.index(of: node)] = nil
            case .acceptPeerResponse(let node):
                guard let held = fetches[number]?.requests[world.index(of: node)]?.held
                else { continue }
                acceptResponse(held, number, &world)
            case .fetchFromOrigin: askOrigin(number, &world)
            default: break
            }
        }
    }

    /// Notifies the waiting peers of the state of a fetch.
    func notifyPeers(
        of fetch: SimulatedFetch, _ status: OwnerSearch.Reply, _ world: inout SimulatedWorld
    ) {
        for peer in fetch.peers {
            world.send(.response(peer.ask, .status(status)), from: index, to: peer.node)
        }
    }

    /// Sends a query with the invalidations that its connection has not carried; its response has
    /// the version of the query.
    private mutating func ask(
        _ number: UInt64, _ other: Int, _ question: OwnerSearch.QueryKind, _ path: TransferKind,
        _ world: inout SimulatedWorld
    ) {
        guard let key = fetches[number]?.key else { return }
        let request = world.nextNumber()
        var unsent: UnsentInvalidations?
        let id = world.members[other].id
        run(&world) { exchange, _, _, _ in
            unsent = exchange.unsentInvalidations(to: id)
            if let unsent { exchange.invalidationsSent(unsent, to: id) }
        }
        let outstanding = SimulatedFetch.OutstandingRequest(
            number: request, path: path, version: replica.invalidationVersion,
            sentAt: clock(at: world.now))
        fetches[number]?.requests[other] = outstanding
        guard let unsent else { return }
        world.send(.request(request, question, key: key, unsent), from: index, to: other)
    }

    /// Sends the request of a fetch to the origin, once, and notifies the waiting peers.
    private mutating func askOrigin(_ number: UInt64, _ world: inout SimulatedWorld) {
        guard let fetch = fetches[number], fetch.origin == nil else { return }
        // An entry that was purged hard in the meantime provides no validators.
        let held = fetch.storedEntry.flatMap { cache.effect(on: $0) == .purged ? nil : $0 }
        let outstanding = SimulatedFetch.OutstandingRequest(
            number: 0, path: held == nil ? .fetch : .revalidation,
            version: replica.invalidationVersion, sentAt: clock(at: world.now))
        fetches[number]?.storedEntry = held
        fetches[number]?.origin = outstanding
        notifyPeers(of: fetch, .fetching, &world)
        if world.isQuiescent { world.log("node \(index) asks the origin for key \(fetch.key)") }
        world.schedule(
            .originRequested(index, run: replica.run, fetch: number, etag: held?.contentVersion),
            after: world.milliseconds(2...30))
    }

    // MARK: Messages

    /// Handles a message of another node.
    mutating func messageReceived(
        _ message: SimulatedMessage, from other: Int, _ world: inout SimulatedWorld
    ) {
        let id = world.members[other].id
        switch message {
        case .invalidation(let message): deliver(.messageReceived(message, from: id), &world)
        case .request(let ask, let question, let key, let unsent):
            deliver(
                .requestInvalidationsReceived(
                    appliedPositions: unsent.positions, records: unsent.records, from: id),
                &world)
            respond(ask, question, key, to: other, &world)
        case .response(let ask, let reply): responseReceived(ask, reply, from: other, &world)
        case .offer(let key, let path):
            // Bytes reach a node only on its own request.
            guard cache[key] == nil, fetches.joinable(key) == nil,
                replica.isCurrent(at: world.now)
            else { return }
            fetch(key, held: nil, for: nil, from: (other, path), &world)
        }
    }

    /// Responds to a peer's query: a GET at a current node is served like a client's request,
    /// others from stored entries alone.
    private mutating func respond(
        _ ask: UInt64, _ question: OwnerSearch.QueryKind, _ key: Int, to other: Int,
        _ world: inout SimulatedWorld
    ) {
        guard let exchange = replica.replication else { return }
        let isBehind = exchange.isBehind(world.members[other].id)
        if !isBehind, question == .get, replica.isCurrent(at: world.now) {
            return request(key, .peer(other, ask: ask), &world)
        }
        let reply = isBehind ? .status(.lagging) : storedReply(question, key, world)
        world.send(.response(ask, reply), from: index, to: other)
    }

    /// Returns the response from stored entries alone; only fresh ones are served.
    private func storedReply(
        _ question: OwnerSearch.QueryKind, _ key: Int, _ world: SimulatedWorld
    ) -> EntryReply {
        let other = EntryReply.status(question == .probe ? .notFound : .declined)
        let now = clock(at: world.now)
        guard let entry = cache[key], cache.effect(on: entry) == nil, now < entry.freshUntil
        else { return other }
        let use = replica.fencedUse(entry.validatedAt, at: world.now)
        let end = entry.validatedAt + SimulatedReplica.fence
        let isUsable = use == .unrestricted || use == .unrestrictedUntil(end)
        return isUsable ? EntryReply(entry, at: now) : other
    }

    /// Handles a peer's response to a query; it is dropped if no fetch waits for it.
    private mutating func responseReceived(
        _ ask: UInt64, _ reply: EntryReply, from other: Int, _ world: inout SimulatedWorld
    ) {
        guard let (number, fetch) = fetches.waiting(for: ask, from: other),
            let question = fetch.requests[other]
        else { return }
        var said = OwnerSearch.Reply.found
        switch reply {
        case .held(let version, let freshFor, let age):
            fetches[number]?.requests[other]?.held = question.entry(
                fetch.key, version: version, freshFor: freshFor, validationAge: age)
        case .status(let status):
            said = status
            if said != .fetching { fetches[number]?.requests[other] = nil }
        }
        if fetch.lookup.step != .notStarted {
            let id = world.members[other].id
            advance(number, &world) { $0.replied(id, said, $1, effects: &$2) }
        } else if said == .found, let held = fetches[number]?.requests[other]?.held {
            // An offered entry is requested only from the peer that offered it.
            acceptResponse(held, number, &world)
        } else if said != .fetching {
            fetches.end(number)
        }
    }

    /// Handles a lost connection: its queries get no response, and its requests need none.
    mutating func disconnected(_ other: Int, _ world: inout SimulatedWorld) {
        let id = world.members[other].id
        deliver(.disconnected(id), &world)
        for (number, fetch) in fetches.numbered {
            fetches[number]?.leave { if case .peer(other, _) = $0 { true } else { false } }
            guard fetch.requests[other] != nil else { continue }
            fetches[number]?.requests[other] = nil
            if fetch.lookup.step == .notStarted {
                fetches.end(number)
            } else {
                advance(number, &world) { $0.lost(id, $1, effects: &$2) }
            }
        }
    }

    // MARK: Offers

    /// Offers all stored entries that no mark affects to their first two owners.
    func offerAll(_ path: TransferKind, _ world: inout SimulatedWorld) {
        for key in world.keys.indices {
            guard let entry = cache[key], cache.effect(on: entry) == nil else { continue }
            for owner in view.owners(of: key, world).prefix(2) where owner != index {
                world.send(.offer(key: key, path), from: index, to: owner)
            }
        }
    }
}
