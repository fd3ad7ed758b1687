import Cluster
import Ground
import Serving
import Tiers

/// Requests of clients and peers.
extension SimulatedCacheNode {
    /// The permitted use of a stored entry at this instant.
    private enum ReuseDecision {
        case fresh, stale, validate
    }

    private func reuseDecision(of entry: SimulatedEntry, _ world: SimulatedWorld)
        -> ReuseDecision?
    {
        let effect = cache.effect(on: entry)
        guard effect != .purged else { return nil }
        if replica.isFenced(entry, at: world.now) { return .validate }
        let now = clock(at: world.now)
        let isFresh = now < entry.freshUntil
        if isFresh, effect == nil { return .fresh }
        // Dropped records may have been hard purges, so no staleness is allowed.
        guard entry.invalidationVersion >= cache.validateBefore else { return .validate }
        let staleFrom = isFresh ? now : entry.freshUntil
        return now < staleFrom + world.keys[entry.key].staleWhileRevalidate ? .stale : .validate
    }

    /// Serves a request, or has it wait for a fetch.
    mutating func request(
        _ key: Int, _ waiter: SimulatedFetch.Waiter, _ world: inout SimulatedWorld
    ) {
        if let entry = cache.memory[key] {
            checkVersion(of: entry, &world)
            switch reuseDecision(of: entry, world) {
            case nil: cache.memory[key] = nil
            case .fresh: return serve(entry, isFresh: true, waiter, &world)
            case .stale where waiter == .client:
                serve(entry, isFresh: false, waiter, &world)
                return revalidate(entry, &world)
            case .stale, .validate: return join(key, held: entry, waiter, &world)
            }
        }
        join(key, held: nil, waiter, &world)
    }

    /// Fetches an entry that was served stale, unless it is being fetched.
    private mutating func revalidate(_ entry: SimulatedEntry, _ world: inout SimulatedWorld) {
        if joinable(entry.key, world) == nil { fetch(entry.key, held: entry, for: nil, &world) }
    }

    private mutating func join(
        _ key: Int, held: SimulatedEntry?, _ waiter: SimulatedFetch.Waiter,
        _ world: inout SimulatedWorld
    ) {
        guard let number = joinable(key, world), fetches[number]?.join(waiter) == true else {
            return fetch(key, held: held, for: waiter, &world)
        }
        guard waiter != .client else { return }
        advance(number, &world) { $0.peerJoined($1, effects: &$2) }
        if let fetch = fetches[number], fetch.lookup.isFetchingFromOrigin {
            sendFetching(fetch, &world)
        }
    }

    private func joinable(_ key: Int, _ world: SimulatedWorld) -> UInt64? {
        guard let number = joinableFetches[key], let fetch = fetches[number] else { return nil }
        let mayJoin =
            world.scenario.mutation == .joiningOlderFetch
            || cache.effect(on: key, fetch.version) == nil
        return mayJoin ? number : nil
    }

    /// Handles a response of the origin at the node.
    mutating func originResponded(
        _ number: UInt64, _ reply: OriginReply, _ world: inout SimulatedWorld
    ) {
        guard let fetch = fetches[number], let request = fetch.origin else { return }
        guard case .version(let version, let isValid, let isShareable) = reply else {
            return originFailed(fetch, number, &world)
        }
        var entry = SimulatedEntry(
            key: fetch.key, contentVersion: version, invalidationVersion: request.version,
            freshUntil: request.sentAt + world.keys[fetch.key].maxAge, validatedAt: request.sentAt)
        if isValid, fetch.storedEntry != nil, world.scenario.mutation == .lateValidationFreshens {
            entry.invalidationVersion = replica.invalidationVersion
        }
        acceptResponse(entry, isShareable: isShareable, number, &world)
    }

    /// Serves a stored entry in place of the failed origin, if permitted and not purged; peers are
    /// notified and decide themselves.
    private mutating func originFailed(
        _ fetch: SimulatedFetch, _ number: UInt64, _ world: inout SimulatedWorld
    ) {
        end(number)
        for peer in fetch.peers {
            world.send(.response(peer.ask, .status(.originFailed)), from: index, to: peer.node)
        }
        guard world.keys[fetch.key].isStaleIfError, let held = cache.memory[fetch.key] else {
            return
        }
        for reader in fetch.readers where reader.waiter == .client {
            guard let use = reuseDecision(of: held, world),
                !replica.isFenced(held, at: world.now),
                use == .fresh || held.invalidationVersion >= cache.validateBefore
            else { return }
            world.cover(.staleIfError)
            serve(held, isFresh: use == .fresh, reader.waiter, &world)
        }
    }

    /// Promotes an entry read from disk, with its version, and serves or revalidates it.
    mutating func promoted(_ number: UInt64, _ world: inout SimulatedWorld) {
        guard let key = fetches[number]?.key else { return }
        guard let entry = cache.index[key], cache.effect(on: entry) != .purged else {
            cache.index[key] = nil
            return diskMissed(number, &world)
        }
        cache.memory[key] = cache.memory[key] ?? entry
        storedEntryFound(cache.memory[key] ?? entry, number, &world)
    }

    private mutating func storedEntryFound(
        _ entry: SimulatedEntry, _ number: UInt64, _ world: inout SimulatedWorld
    ) {
        checkVersion(of: entry, &world)
        switch reuseDecision(of: entry, world) {
        case .fresh: return deliverResponse(entry, isFresh: true, number, &world)
        case .stale where fetches[number]?.readers.first?.waiter == .client:
            deliverResponse(entry, isFresh: false, number, &world)
            revalidate(entry, &world)
        case nil: diskMissed(number, &world)
        case .stale, .validate:
            fetches[number]?.storedEntry = entry
            diskMissed(number, &world)
        }
    }

    private mutating func diskMissed(_ number: UInt64, _ world: inout SimulatedWorld) {
        advance(number, &world) { lookup, _, effects in lookup.diskMissed(effects: &effects) }
    }

    /// Stores a response and serves it to the waiting requests, or restarts them.
    mutating func acceptResponse(
        _ entry: SimulatedEntry, isShareable: Bool = true, _ number: UInt64,
        _ world: inout SimulatedWorld
    ) {
        if !isShareable {
            world.cover(.unshareable)
        } else if cache.effect(on: entry) != .purged {
            store(entry, &world)
        }
        deliverResponse(entry, isShareable: isShareable, isFresh: true, number, &world)
    }

    /// Serves a response to the waiting requests, as far as the lookup permits.
    private mutating func deliverResponse(
        _ entry: SimulatedEntry, isShareable: Bool = true, isFresh: Bool, _ number: UInt64,
        _ world: inout SimulatedWorld
    ) {
        guard var fetch = fetches[number] else { return }
        end(number)
        var validity = Fetch.Validity(
            of: cache.effect(on: entry), isExcluded: replica.isFenced(entry, at: world.now),
            isShared: isShareable)
        if world.scenario.mutation == .joiningOlderFetch { validity = .valid }
        var effects: [LookupEffect] = []
        fetch.lookup.fetch.storedResponseUsed(
            isShared: isShareable, validity: validity, effects: &effects)
        for reader in fetch.readers {
            switch fetch.lookup.fetch.nextStep(for: reader.id, limit: 0) {
            case .finish where isShareable:
                serve(entry, isFresh: isFresh && validity == .valid, reader.waiter, &world)
            case .finish:
                // An unshareable response goes to the client that caused the fetch alone, and no
                // guarantee about stored responses applies to it.
                guard case .peer(let other, let ask) = reader.waiter else { continue }
                world.send(.response(ask, .status(.declined)), from: index, to: other)
            default: request(entry.key, reader.waiter, &world)
            }
        }
    }

    // MARK: Serving

    /// Serves an entry at this instant, to a client or a peer.
    private mutating func serve(
        _ entry: SimulatedEntry, isFresh: Bool, _ waiter: SimulatedFetch.Waiter,
        _ world: inout SimulatedWorld
    ) {
        guard case .peer(let other, let ask) = waiter else {
            return world.check(entry, isFresh: isFresh, readAt: replica)
        }
        world.send(.response(ask, reply(with: entry, world)), from: index, to: other)
    }

    /// Returns the response with an entry to a peer.
    func reply(with entry: SimulatedEntry, _ world: SimulatedWorld) -> EntryReply {
        let now = clock(at: world.now)
        return .held(
            version: entry.contentVersion, freshFor: entry.freshUntil - now,
            validationAge: now - entry.validatedAt)
    }

    /// Checks that every later invalidation can cover the entry.
    private func checkVersion(of entry: SimulatedEntry, _ world: inout SimulatedWorld) {
        guard entry.invalidationVersion > replica.invalidationVersion else { return }
        world.fail("node \(index) holds key \(entry.key), which can no longer be purged")
    }

    // MARK: Storing

    /// Stores a response with its version: in memory, and on disk if the node is one of two owners.
    private mutating func store(_ entry: SimulatedEntry, _ world: inout SimulatedWorld) {
        if let held = cache.memory[entry.key],
            held.invalidationVersion > entry.invalidationVersion
        {
            return
        }
        cache.memory[entry.key] = entry
        guard view.owners(of: entry.key, world).prefix(2).contains(index) || world.chance(oneIn: 3)
        else { return }
        cache.append(entry, to: &replica.storage, at: world.now)
    }

    /// Evicts, drops marks, offers entries and re-inserts one, at random.
    mutating func runHousekeeping(_ world: inout SimulatedWorld) {
        world.schedule(
            .housekeeping(index, run: replica.run), after: world.milliseconds(200...1_500))
        let key = Int.random(in: world.keys.indices, using: &world.dice)
        if world.chance(oneIn: 3) { cache.memory[key] = nil }
        dropMarks(&world)
        if offersDue > world.now { offerAll(.offer, &world) }
        if world.members[index].isDraining { offerAll(.drain, &world) }
        for fetch in fetches.values where fetch.lookup.isFetchingFromOrigin {
            sendFetching(fetch, &world)
        }
        guard cache.isScanned, let entry = cache.index[key], cache.reinserting[key] == nil,
            cache.effect(on: entry) != .purged
        else { return }
        cache.reinserting[key] = entry
        world.schedule(
            .reinserted(index, run: replica.run, key: key), after: world.milliseconds(5...60))
    }

    /// Re-inserts an entry of a reclaimed segment, with its original version.
    mutating func reinserted(_ key: Int, _ world: inout SimulatedWorld) {
        guard var entry = cache.reinserting[key] else { return }
        cache.reinserting[key] = nil
        guard cache.index[key] == entry else { return }
        if cache.effect(on: entry) == .purged { world.cover(.reinsertionOfPurged) }
        if world.scenario.mutation == .newVersionOnReinsertion {
            entry.invalidationVersion = replica.invalidationVersion
        }
        cache.reinsert(entry, into: &replica.storage, at: world.now)
    }

    /// Drops the marks that nothing stored or in transfer needs.
    private mutating func dropMarks(_ world: inout SimulatedWorld) {
        guard cache.isScanned else { return }
        let mutation = world.scenario.mutation
        let isHasty = mutation == .markDroppedDuringFetch
        let stored = mutation == .markDroppedWhileOnDisk ? [] : replica.storage.entries
        let dropped = cache.dropUnusedMarks(
            upTo: isHasty ? replica.invalidationVersion : oldestInTransfer, onDisk: stored)
        for _ in 0..<dropped { world.cover(.markDropped) }
        cache.dropOldMarks(inTransferSince: oldestInTransfer, &replica.storage)
    }

    /// The lowest version of any request in progress and any entry being moved.
    private var oldestInTransfer: InvalidationVersion {
        let moving = cache.reinserting.compactMap(\.self) + fetches.values.compactMap(\.storedEntry)
        let versions = moving.map(\.invalidationVersion) + fetches.values.map(\.version)
        return versions.reduce(replica.invalidationVersion, min)
    }
}
