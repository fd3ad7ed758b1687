import Cluster
import Ground
import Serving
import Tiers

/// Memory and disk of nodes, and the messages between peers.
extension InvalidationSimulation {
    /// Stores a response with its version: in memory, and on disk if the node is one of two owners.
    mutating func store(_ entry: SimulatedEntry, _ index: Int) {
        if let held = nodes[index].memory[entry.key],
            held.invalidationVersion > entry.invalidationVersion
        {
            return
        }
        nodes[index].memory[entry.key] = entry
        let owners = owners(of: entry.key, seenBy: index).prefix(2)
        guard owners.contains(index) || chance(oneIn: 3) else { return }
        append(entry, index)
    }

    private mutating func append(_ entry: SimulatedEntry, _ index: Int) {
        var entry = entry
        nodes[index].storage.sequence += 1
        entry.sequence = nodes[index].storage.sequence
        entry.writtenAt = now
        nodes[index].storage.entries.append(entry)
        nodes[index].index[entry.key] = entry
    }

    /// Completes the disk scan after a start: the newest record of each key is indexed.
    mutating func scanned(_ index: Int) {
        nodes[index].isScanned = true
        // The boot clock continues, since no machine image is restored.
        for entry in nodes[index].storage.entries {
            let known = nodes[index].index[entry.key]
            if known.map({ $0.sequence < entry.sequence }) ?? true {
                nodes[index].index[entry.key] = entry
            }
        }
    }

    /// Promotes an entry read from disk, with its version.
    mutating func promoted(_ index: Int, _ number: UInt64) {
        guard let fetch = nodes[index].fetches[number] else { return }
        let entry = nodes[index].index[fetch.key]
        guard let entry, effect(on: entry, index) != .purged else {
            nodes[index].index[fetch.key] = nil
            return deliver(index, number) { lookup, _, effects in
                lookup.diskMissed(effects: &effects)
            }
        }
        nodes[index].memory[fetch.key] = nodes[index].memory[fetch.key] ?? entry
        storedEntryFound(nodes[index].memory[fetch.key] ?? entry, index, number)
    }

    // MARK: Reclaiming

    /// Evicts, drops marks, offers entries and re-inserts one, at random.
    mutating func runHousekeeping(_ index: Int) {
        let run = nodes[index].run
        eventQueue.schedule(.housekeeping(index, run: run), at: now + milliseconds(200...1_500))
        let key = Int.random(in: keys.indices, using: &dice)
        if chance(oneIn: 3) { nodes[index].memory[key] = nil }
        dropUnusedMarks(index)
        dropOldMarks(index)
        if nodes[index].offersDue > now { offerAll(index, .offer) }
        if nodes[index].isDraining { offerAll(index, .drain) }
        for fetch in nodes[index].fetches.values where fetch.lookup.isFetchingFromOrigin {
            sendFetching(fetch, index)
        }
        guard nodes[index].isScanned, let entry = nodes[index].index[key],
            nodes[index].reinserting[key] == nil, effect(on: entry, index) != .purged
        else { return }
        nodes[index].reinserting[key] = entry
        eventQueue.schedule(.reinserted(index, run: run, key: key), at: now + milliseconds(5...60))
    }

    /// Re-inserts an entry of a reclaimed segment, with its original version.
    mutating func reinserted(_ index: Int, _ key: Int) {
        guard var entry = nodes[index].reinserting[key] else { return }
        nodes[index].reinserting[key] = nil
        guard nodes[index].index[key] == entry else { return }
        if effect(on: entry, index) == .purged { cover(.reinsertionOfPurged) }
        if scenario.mutation == .newVersionOnReinsertion {
            entry.invalidationVersion = nodes[index].invalidationVersion
        }
        append(entry, index)
        let newest = nodes[index].storage.sequence
        // Records older than a synced one are dropped with their segment.
        let kept = nodes[index].storage.entries.filter {
            $0.key != key || $0.sequence == newest || now - $0.writtenAt <= .seconds(1)
                || !hasSynced(key, after: $0.sequence, index)
        }
        nodes[index].storage.entries = kept
    }

    private func hasSynced(_ key: Int, after sequence: UInt64, _ index: Int) -> Bool {
        nodes[index].storage.entries.contains {
            $0.key == key && $0.sequence > sequence && now - $0.writtenAt > .milliseconds(200)
        }
    }

    /// Drops the marks of URLs for which nothing is stored or in transfer that they could cover.
    private mutating func dropUnusedMarks(_ index: Int) {
        let node = nodes[index]
        guard node.isScanned else { return }
        let isHasty = scenario.mutation == .markDroppedDuringFetch
        let due = nodes[index].unconfirmedMarks.remove(
            upTo: isHasty ? node.invalidationVersion : oldestInFlight(node))
        var held = (node.memory + node.reinserting).compactMap(\.self)
        if scenario.mutation != .markDroppedWhileOnDisk { held += node.storage.entries }
        let names = Set(held.map { URLName.fingerprint(keys[$0.key].urlName[...]) })
        for young in due where !names.contains(young.fingerprint) {
            nodes[index].marks.forget(young.slot, upTo: young.version)
            cover(.markDropped)
        }
    }

    /// Returns the lowest version of any request in progress and any entry being moved.
    private func oldestInFlight(_ node: SimulatedCacheNode) -> InvalidationVersion {
        var least = node.invalidationVersion
        for entry in node.reinserting.compactMap(\.self) {
            least = min(least, entry.invalidationVersion)
        }
        for fetch in node.fetches.values {
            least = min(least, fetch.version)
            if let held = fetch.storedEntry { least = min(least, held.invalidationVersion) }
        }
        return least
    }

    /// Drops the marks that are older than everything stored or in transfer.
    private mutating func dropOldMarks(_ index: Int) {
        let node = nodes[index]
        guard node.isScanned, node.markList.count > 40 else { return }
        var least = oldestInFlight(node)
        for entry in node.memory.compactMap(\.self) {
            least = min(least, entry.invalidationVersion)
        }
        for entry in node.storage.entries { least = min(least, entry.invalidationVersion) }
        nodes[index].markList.removeAll { $0.version <= least }
        nodes[index].storage.marks.removeAll { $0.version <= least }
        nodes[index].marks.fold(upTo: least)
    }

    // MARK: Peers

    /// Handles a message at its receiver.
    mutating func arrive(_ message: SimulatedMessage, from: Int, to: Int) {
        switch message {
        case .invalidation(let message):
            if case .roundRequest = message { recordRoundContact(from, by: to) }
            deliver(to, .messageReceived(message, from: nodes[from].id))
        case .request(let ask, let question, let key, let untold):
            deliver(
                to,
                .requestInvalidationsReceived(
                    appliedPositions: untold.positions, records: untold.records,
                    from: nodes[from].id))
            respond(ask, question, key, from: from, at: to)
        case .response(let ask, let reply): responseReceived(ask, reply, from: from, at: to)
        case .offer(let key, let path): offerReceived(key, path, from: from, at: to)
        }
    }

    private mutating func recordRoundContact(_ index: Int, by other: Int) {
        let run = nodes[other].run
        guard oracle.decidedSets.last?.contains(nodes[other].id) ?? false,
            !nodes[index].roundContacts.contains(where: { $0.by == other && $0.run == run })
        else { return }
        nodes[index].roundContacts.append((now, other, run))
        let isCounted = oracle.decidedSets.last?.contains(nodes[index].id) ?? false
        if !isCounted, !watchedPurges.isEmpty { cover(.joinerDuringReceipt) }
    }

    private mutating func respond(
        _ ask: UInt64, _ question: OwnerSearch.QueryKind, _ key: Int, from: Int, at index: Int
    ) {
        guard let exchange = nodes[index].replication else { return }
        guard !exchange.isBehind(nodes[from].id) else {
            return send(.response(ask, .status(.lagging)), from: index, to: from)
        }
        let isHeld = nodes[index].memory[key] != nil || nodes[index].index[key] != nil
        if question == .probe, !isHeld {
            return send(.response(ask, .status(.notFound)), from: index, to: from)
        }
        guard question == .get, isCurrent(index) else {
            return respondFromStore(ask, question, key, from: from, at: index)
        }
        request(index, key, .peer(from, ask: ask))
    }

    /// Responds from stored entries alone; only fresh ones are served.
    private mutating func respondFromStore(
        _ ask: UInt64, _ question: OwnerSearch.QueryKind, _ key: Int, from: Int, at index: Int
    ) {
        if let entry = nodes[index].memory[key] ?? nodes[index].index[key],
            effect(on: entry, index) == nil, clock(index) < entry.freshUntil
        {
            let use = fencedUse(entry.validatedAt, index)
            if use == .unrestricted || use == .unrestrictedUntil(entry.validatedAt + Self.fence) {
                let held = EntryReply.held(
                    version: entry.contentVersion, freshFor: entry.freshUntil - clock(index),
                    validationAge: clock(index) - entry.validatedAt)
                return send(.response(ask, held), from: index, to: from)
            }
        }
        let nothing: OwnerSearch.Reply = question == .probe ? .notFound : .declined
        send(.response(ask, .status(nothing)), from: index, to: from)
    }

    private mutating func responseReceived(
        _ ask: UInt64, _ reply: EntryReply, from: Int, at index: Int
    ) {
        let fetches = nodes[index].fetches
        for (number, fetch) in zip(fetches.keys, fetches.values) {
            guard let question = fetch.requests[from], question.number == ask else { continue }
            let node = nodes[from].id
            switch reply {
            case .held(let version, let freshFor, let age):
                let validatedAt = question.sentAt - age
                let entry = SimulatedEntry(
                    key: fetch.key, contentVersion: version, invalidationVersion: question.version,
                    freshUntil: question.sentAt + freshFor, validatedAt: validatedAt)
                nodes[index].fetches[number]?.requests[from]?.held = entry
                peerResponseReceived(.found, from: node, of: fetch, index, number)
            case .status(let said):
                if said != .fetching { nodes[index].fetches[number]?.requests[from] = nil }
                peerResponseReceived(said, from: node, of: fetch, index, number)
            }
            return
        }
    }

    /// Handles a peer's response; an offered entry is requested only from the peer that offered it.
    private mutating func peerResponseReceived(
        _ reply: OwnerSearch.Reply, from node: NodeID, of fetch: SimulatedFetch, _ index: Int,
        _ number: UInt64
    ) {
        guard fetch.lookup.step == .notStarted else {
            return deliver(index, number) { $0.replied(node, reply, $1, effects: &$2) }
        }
        if reply == .found {
            acceptResponse(from: node, index, number)
        } else if reply != .fetching {
            end(index, number)
        }
    }

    /// Handles a lost connection: its queries get no response, and its requests need none.
    mutating func lost(_ index: Int, _ other: Int) {
        let id = nodes[other].id
        let fetches = nodes[index].fetches
        for (number, fetch) in zip(fetches.keys, fetches.values) {
            nodes[index].fetches[number]?.leave {
                if case .peer(other, _) = $0 { true } else { false }
            }
            guard fetch.requests[other] != nil else { continue }
            nodes[index].fetches[number]?.requests[other] = nil
            if fetch.lookup.step == .notStarted {
                end(index, number)
            } else {
                deliver(index, number) { $0.lost(id, $1, effects: &$2) }
            }
        }
    }

    // MARK: Offers

    /// Offers all stored entries to owners that may lack them.
    mutating func offerAll(_ index: Int, _ path: TransferKind) {
        for key in keys.indices {
            guard let entry = nodes[index].memory[key] ?? nodes[index].index[key],
                effect(on: entry, index) == nil
            else { continue }
            for owner in owners(of: key, seenBy: index).prefix(2) where owner != index {
                send(.offer(key: key, path), from: index, to: owner)
            }
        }
    }

    /// Requests an offered entry, since bytes reach a node only on its own request.
    private mutating func offerReceived(_ key: Int, _ path: TransferKind, from: Int, at index: Int)
    {
        guard nodes[index].memory[key] == nil, nodes[index].index[key] == nil,
            nodes[index].joinableFetches[key] == nil, isCurrent(index)
        else { return }
        fetch(index, key, held: nil, for: nil, from: (from, path))
    }
}
