import Cluster
import Ground
import Serving
import Tiers

/// Requests of clients and peers.
extension SimulatedCacheNode {
    /// Returns the permitted use of an entry at this node now; `nil` if it is purged.
    private func reuse(of entry: SimulatedEntry, _ world: SimulatedWorld) -> ReuseDecision? {
        let isFenced = replica.isFenced(entry, at: world.now)
        return cache.reuse(of: entry, isFenced: isFenced, at: clock(at: world.now))
    }

    /// Serves a request, or has it wait for a fetch.
    mutating func request(
        _ key: Int, _ waiter: SimulatedFetch.Waiter, _ world: inout SimulatedWorld
    ) {
        if let entry = cache.memory[key] {
            checkVersion(of: entry, &world)
            switch reuse(of: entry, world) {
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

    /// Has a request wait for the fetch of its key, or for a new one if it may not join that.
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
            notifyPeers(of: fetch, .fetching, &world)
        }
    }

    /// Returns the fetch of a key that a request may join; `nil` if there is none, or an
    /// invalidation of the key has been applied since it began.
    private func joinable(_ key: Int, _ world: SimulatedWorld) -> UInt64? {
        guard let number = fetches.joinable(key), let fetch = fetches[number] else { return nil }
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
        var entry = request.entry(
            fetch.key, version: version, freshFor: world.keys[fetch.key].maxAge)
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
        fetches.end(number)
        notifyPeers(of: fetch, .originFailed, &world)
        guard world.keys[fetch.key].isStaleIfError, let held = cache.memory[fetch.key] else {
            return
        }
        for reader in fetch.readers where reader.waiter == .client {
            guard let use = reuse(of: held, world),
                !replica.isFenced(held, at: world.now),
                use == .fresh || held.invalidationVersion >= cache.validateBefore
            else { return }
            world.cover(.staleIfError)
            serve(held, isFresh: use == .fresh, reader.waiter, &world)
        }
    }

    /// Promotes an entry read from disk, with its version, and serves or revalidates it; without
    /// one the lookup continues.
    mutating func promoted(_ number: UInt64, _ world: inout SimulatedWorld) {
        guard let key = fetches[number]?.key else { return }
        if let entry = cache.index[key], cache.effect(on: entry) != .purged {
            let held = cache.memory[key] ?? entry
            cache.memory[key] = held
            checkVersion(of: held, &world)
            switch reuse(of: held, world) {
            case .fresh: return deliverResponse(held, isFresh: true, number, &world)
            case .stale where fetches[number]?.readers.first?.waiter == .client:
                deliverResponse(held, isFresh: false, number, &world)
                return revalidate(held, &world)
            case .stale, .validate: fetches[number]?.storedEntry = held
            case nil: break
            }
        } else {
            cache.index[key] = nil
        }
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
        fetches.end(number)
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

    /// Serves an entry now: to a client, where the guarantees are checked, or to a peer.
    private mutating func serve(
        _ entry: SimulatedEntry, isFresh: Bool, _ waiter: SimulatedFetch.Waiter,
        _ world: inout SimulatedWorld
    ) {
        guard case .peer(let other, let ask) = waiter else {
            return world.check(entry, isFresh: isFresh, readAt: replica)
        }
        world.send(
            .response(ask, EntryReply(entry, at: clock(at: world.now))), from: index, to: other)
    }

    /// Checks that every later invalidation can cover the entry.
    private func checkVersion(of entry: SimulatedEntry, _ world: inout SimulatedWorld) {
        guard entry.invalidationVersion > replica.invalidationVersion else { return }
        world.fail("node \(index) holds key \(entry.key), which can no longer be purged")
    }

    // MARK: Storing

    /// Stores a response with its version: in memory, unless that has a later one, and on disk,
    /// always if the node is one of two owners, else at random.
    private mutating func store(_ entry: SimulatedEntry, _ world: inout SimulatedWorld) {
        guard cache.insert(entry) else { return }
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
            notifyPeers(of: fetch, .fetching, &world)
        }
        guard cache.isScanned, let entry = cache.index[key], cache.reinserting[key] == nil,
            cache.effect(on: entry) != .purged
        else { return }
        cache.reinserting[key] = entry
        world.schedule(
            .reinserted(index, run: replica.run, key: key), after: world.milliseconds(5...60))
    }

    /// Re-inserts an entry of a reclaimed segment, if it is the newest, with its original version.
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
        let moving = cache.reinserting.compactMap { $0?.invalidationVersion }
        let oldest = (moving + fetches.values.map(\.oldestVersion))
            .reduce(replica.invalidationVersion, min)
        let dropped = cache.dropUnusedMarks(
            upTo: mutation == .markDroppedDuringFetch ? replica.invalidationVersion : oldest,
            onDisk: mutation == .markDroppedWhileOnDisk ? [] : replica.storage.entries)
        for _ in 0..<dropped { world.cover(.markDropped) }
        cache.dropOldMarks(inTransferSince: oldest, &replica.storage)
    }
}
