import Cluster
import Ground
import Serving
import Tiers

/// Fetches from peers and the origin, and the requests of peers.
extension SimulatedCacheNode {
    /// Starts a fetch, caused by the request of `waiter` if it is not `nil`.
    mutating func fetch(
        _ key: Int, held: SimulatedEntry?, for waiter: SimulatedFetch.Waiter?,
        from source: (node: Int, path: TransferKind)? = nil, _ world: inout SimulatedWorld
    ) {
        let number = world.nextNumber()
        var fetch = SimulatedFetch(key: key, begun: replica.invalidationVersion, waiter)
        fetch.storedEntry = held
        fetches[number] = fetch
        if let source { return ask(number, source.node, .probe, source.path, &world) }
        joinableFetches[key] = number
        let asksDisk = held == nil && cache.index[key] != nil
        advance(number, &world) { lookup, _, effects in
            lookup.started(readsDisk: asksDisk, effects: &effects)
        }
    }

    /// Ends a fetch, or excludes it from further use.
    mutating func end(_ number: UInt64) {
        guard let key = fetches[number]?.key else { return }
        fetches[number] = nil
        if joinableFetches[key] == number { joinableFetches[key] = nil }
    }

    /// Reports an event to the lookup of a fetch and performs the effects.
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
                let peers = isCurrent ? peers(for: fetch.key, world) : nil
                advance(number, &world) { $0.peersResolved(peers, $1, effects: &$2) }
            case .sendPeerQuery(let node, let question):
                let path: TransferKind = question == .get ? .get : .probe
                ask(number, world.index(of: node), question, path, &world)
            case .cancelPeerQuery(let node):
                fetches[number]?.requests[world.index(of: node)] = nil
            case .acceptPeerResponse(let node):
                acceptResponse(from: world.index(of: node), number, &world)
            case .fetchFromOrigin: askOrigin(number, &world)
            default: break
            }
        }
    }

    /// Returns the owners of the key in the node's view, with their reachability.
    private func peers(for key: Int, _ world: SimulatedWorld) -> Lookup.Peers {
        let candidates = view.owners(of: key, world).map { other in
            OwnerSearch.Candidate(
                world.members[other].id,
                isReachable: other == index || world.network.areConnected(index, other))
        }
        return Lookup.Peers(me: world.members[index].id, preference: candidates, leaving: [])
    }

    /// Notifies the waiting peers that the origin is being queried.
    func sendFetching(_ fetch: SimulatedFetch, _ world: inout SimulatedWorld) {
        for peer in fetch.peers {
            world.send(.response(peer.ask, .status(.fetching)), from: index, to: peer.node)
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

    private mutating func askOrigin(_ number: UInt64, _ world: inout SimulatedWorld) {
        guard let fetch = fetches[number], fetch.origin == nil else { return }
        // An entry that was purged hard in the meantime provides no validators.
        let held = fetch.storedEntry.flatMap { cache.effect(on: $0) == .purged ? nil : $0 }
        let outstanding = SimulatedFetch.OutstandingRequest(
            number: 0, path: held == nil ? .fetch : .revalidation,
            version: replica.invalidationVersion, sentAt: clock(at: world.now))
        fetches[number]?.storedEntry = held
        fetches[number]?.origin = outstanding
        sendFetching(fetch, &world)
        if world.isQuiescent { world.log("node \(index) asks the origin for key \(fetch.key)") }
        world.schedule(
            .originRequested(index, run: replica.run, fetch: number, etag: held?.contentVersion),
            after: world.milliseconds(2...30))
    }

    /// Accepts the response that a peer offered.
    private mutating func acceptResponse(
        from other: Int, _ number: UInt64, _ world: inout SimulatedWorld
    ) {
        guard let entry = fetches[number]?.requests[other]?.held else { return }
        acceptResponse(entry, number, &world)
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
            guard cache[key] == nil, joinableFetches[key] == nil,
                replica.isCurrent(at: world.now)
            else { return }
            fetch(key, held: nil, for: nil, from: (other, path), &world)
        }
    }

    private mutating func respond(
        _ ask: UInt64, _ question: OwnerSearch.QueryKind, _ key: Int, to other: Int,
        _ world: inout SimulatedWorld
    ) {
        guard let exchange = replica.replication else { return }
        if !exchange.isBehind(world.members[other].id), question == .get,
            replica.isCurrent(at: world.now)
        {
            return request(key, .peer(other, ask: ask), &world)
        }
        let reply =
            exchange.isBehind(world.members[other].id)
            ? .status(.lagging) : storedReply(question, key, world)
        world.send(.response(ask, reply), from: index, to: other)
    }

    /// Returns the response from stored entries alone; only fresh ones are served.
    private func storedReply(
        _ question: OwnerSearch.QueryKind, _ key: Int, _ world: SimulatedWorld
    ) -> EntryReply {
        if let entry = cache[key], cache.effect(on: entry) == nil,
            clock(at: world.now) < entry.freshUntil
        {
            let use = replica.fencedUse(entry.validatedAt, at: world.now)
            let end = entry.validatedAt + SimulatedReplica.fence
            if use == .unrestricted || use == .unrestrictedUntil(end) {
                return reply(with: entry, world)
            }
        }
        return .status(question == .probe ? .notFound : .declined)
    }

    private mutating func responseReceived(
        _ ask: UInt64, _ reply: EntryReply, from other: Int, _ world: inout SimulatedWorld
    ) {
        for (number, fetch) in zip(fetches.keys, fetches.values) {
            guard let question = fetch.requests[other], question.number == ask else { continue }
            var said = OwnerSearch.Reply.found
            switch reply {
            case .held(let version, let freshFor, let age):
                fetches[number]?.requests[other]?.held = SimulatedEntry(
                    key: fetch.key, contentVersion: version, invalidationVersion: question.version,
                    freshUntil: question.sentAt + freshFor, validatedAt: question.sentAt - age)
            case .status(let status):
                said = status
                if said != .fetching { fetches[number]?.requests[other] = nil }
            }
            return peerReplied(said, from: other, of: fetch, number, &world)
        }
    }

    /// Handles a peer's response; an offered entry is requested only from the peer that offered it.
    private mutating func peerReplied(
        _ reply: OwnerSearch.Reply, from other: Int, of fetch: SimulatedFetch, _ number: UInt64,
        _ world: inout SimulatedWorld
    ) {
        guard fetch.lookup.step == .notStarted else {
            let id = world.members[other].id
            return advance(number, &world) { $0.replied(id, reply, $1, effects: &$2) }
        }
        if reply == .found {
            acceptResponse(from: other, number, &world)
        } else if reply != .fetching {
            end(number)
        }
    }

    /// Handles a lost connection: its queries get no response, and its requests need none.
    mutating func disconnected(_ other: Int, _ world: inout SimulatedWorld) {
        let id = world.members[other].id
        deliver(.disconnected(id), &world)
        for (number, fetch) in zip(fetches.keys, fetches.values) {
            fetches[number]?.leave { if case .peer(other, _) = $0 { true } else { false } }
            guard fetch.requests[other] != nil else { continue }
            fetches[number]?.requests[other] = nil
            if fetch.lookup.step == .notStarted {
                end(number)
            } else {
                advance(number, &world) { $0.lost(id, $1, effects: &$2) }
            }
        }
    }

    // MARK: Offers

    /// Offers all stored entries to owners that may lack them.
    func offerAll(_ path: TransferKind, _ world: inout SimulatedWorld) {
        for key in world.keys.indices {
            guard let entry = cache[key], cache.effect(on: entry) == nil else { continue }
            for owner in view.owners(of: key, world).prefix(2) where owner != index {
                world.send(.offer(key: key, path), from: index, to: owner)
            }
        }
    }
}
