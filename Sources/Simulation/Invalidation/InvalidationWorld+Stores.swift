import Cluster
import Ground
import Serving
import Tiers

/// Memory, disk, and what peers say of what they hold.
extension InvalidationWorld {
    /// Keeps an answer with its stamp: in memory here, and on disk if this node is one of two
    /// owners.
    mutating func store(_ entry: SimulatedEntry, _ index: Int) {
        if let held = nodes[index].memory[entry.key], held.stamp > entry.stamp { return }
        nodes[index].memory[entry.key] = entry
        let owners = owners(of: entry.key, seenBy: index).prefix(2)
        guard owners.contains(index) || throwsOne(in: 3) else { return }
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

    /// The disk has been read after a start: of each key the newest that is there.
    mutating func scanned(_ index: Int) {
        nodes[index].isScanned = true
        // The boot clock goes on: an image of the machine is not restored.
        for entry in nodes[index].storage.entries {
            let known = nodes[index].index[entry.key]
            if known.map({ $0.sequence < entry.sequence }) ?? true {
                nodes[index].index[entry.key] = entry
            }
        }
    }

    /// Read from disk: it keeps its stamp.
    mutating func promoted(_ index: Int, _ number: UInt64) {
        guard let fill = nodes[index].fills[number] else { return }
        let entry = nodes[index].index[fill.key]
        guard let entry, effect(on: entry, index) != .dead else {
            nodes[index].index[fill.key] = nil
            return tell(index, number) { lookup, _, effects in lookup.absent(effects: &effects) }
        }
        nodes[index].memory[fill.key] = nodes[index].memory[fill.key] ?? entry
        found(nodes[index].memory[fill.key] ?? entry, index, number)
    }

    // MARK: Reclaiming

    mutating func keepHouse(_ index: Int) {
        let run = nodes[index].run
        timeline.plan(.housekeeping(index, run: run), at: now + milliseconds(200...1_500))
        let key = Int.random(in: keys.indices, using: &dice)
        if throwsOne(in: 3) { nodes[index].memory[key] = nil }
        reviewMarks(index)
        dropMarks(index)
        if nodes[index].offersDue > now { offerAll(index, .offer) }
        if nodes[index].isDraining { offerAll(index, .drain) }
        for fill in nodes[index].fills.values where fill.lookup.isAskingOrigin {
            sayFetching(fill, index)
        }
        guard nodes[index].isScanned, let entry = nodes[index].index[key],
            nodes[index].reinserting[key] == nil, effect(on: entry, index) != .dead
        else { return }
        nodes[index].reinserting[key] = entry
        timeline.plan(.reinserted(index, run: run, key: key), at: now + milliseconds(5...60))
    }

    /// Its segment is reclaimed: what is in use is written anew, with the stamp that it has.
    mutating func reinserted(_ index: Int, _ key: Int) {
        guard var entry = nodes[index].reinserting[key] else { return }
        nodes[index].reinserting[key] = nil
        guard nodes[index].index[key] == entry else { return }
        if effect(on: entry, index) == .dead { reach(.reinsertionOfPurged) }
        if plan.mutation == .restampOnReinsertion { entry.stamp = nodes[index].stamp }
        append(entry, index)
        let newest = nodes[index].storage.sequence
        // What is older than what is synced goes with its segment.
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

    /// Marks of URLs go when nothing is held, or on its way, that they might cover.
    private mutating func reviewMarks(_ index: Int) {
        let node = nodes[index]
        guard node.isScanned else { return }
        let isHasty = plan.mutation == .markGoneDuringFetch
        let due = nodes[index].young.take(upTo: isHasty ? node.stamp : leastOnItsWay(node))
        var held = (node.memory + node.reinserting).compactMap(\.self)
        if plan.mutation != .markGoneBesideDisk { held += node.storage.entries }
        let names = Set(held.map { URLName.fingerprint(keys[$0.key].urlName[...]) })
        for young in due where !names.contains(young.name) {
            nodes[index].marks.forget(young.slot, upTo: young.stamp)
            reach(.markGone)
        }
    }

    /// What no request that is under way, and no entry that is being moved, is stamped before.
    private func leastOnItsWay(_ node: SimulatedCacheNode) -> Stamp {
        var least = node.stamp
        for entry in node.reinserting.compactMap(\.self) { least = min(least, entry.stamp) }
        for fill in node.fills.values {
            least = min(least, fill.begun)
            if let held = fill.held { least = min(least, held.stamp) }
        }
        return least
    }

    /// Marks go when nothing that is held, or on its way, is older.
    private mutating func dropMarks(_ index: Int) {
        let node = nodes[index]
        guard node.isScanned, node.markList.count > 40 else { return }
        var least = leastOnItsWay(node)
        for entry in node.memory.compactMap(\.self) { least = min(least, entry.stamp) }
        for entry in node.storage.entries { least = min(least, entry.stamp) }
        nodes[index].markList.removeAll { $0.stamp <= least }
        nodes[index].storage.marks.removeAll { $0.stamp <= least }
        nodes[index].marks.fold(upTo: least)
    }

    // MARK: Peers

    mutating func arrive(_ message: Message, from: Int, to: Int) {
        switch message {
        case .said(let message):
            if case .round = message { introduced(from, by: to) }
            tell(to, .message(message, from: nodes[from].id))
        case .ask(let ask, let question, let key, let untold):
            tell(
                to,
                .question(
                    knowledge: untold.positions, records: untold.records, from: nodes[from].id))
            answer(ask, question, key, from: from, at: to)
        case .reply(let ask, let reply): replied(ask, reply, from: from, at: to)
        case .offer(let key, let path): offered(key, path, from: from, at: to)
        }
    }

    private mutating func introduced(_ index: Int, by other: Int) {
        let run = nodes[other].run
        guard truth.line.last?.contains(nodes[other].id) ?? false,
            !nodes[index].introductions.contains(where: { $0.by == other && $0.run == run })
        else { return }
        nodes[index].introductions.append((now, other, run))
        let isCounted = truth.line.last?.contains(nodes[index].id) ?? false
        if !isCounted, !watched.isEmpty { reach(.joinerDuringReceipt) }
    }

    private mutating func answer(
        _ ask: UInt64, _ question: OwnerSearch.Question, _ key: Int, from: Int, at index: Int
    ) {
        guard let exchange = nodes[index].exchange else { return }
        guard !exchange.isBehind(nodes[from].id) else {
            return send(.reply(ask, .said(.behind)), from: index, to: from)
        }
        let isHeld = nodes[index].memory[key] != nil || nodes[index].index[key] != nil
        if question == .probe, !isHeld {
            return send(.reply(ask, .said(.absent)), from: index, to: from)
        }
        guard question == .get, isCurrent(index) else {
            return answerFromStore(ask, question, key, from: from, at: index)
        }
        request(index, key, .peer(from, ask: ask))
    }

    /// Starts nothing: what is not fresh here is not given.
    private mutating func answerFromStore(
        _ ask: UInt64, _ question: OwnerSearch.Question, _ key: Int, from: Int, at index: Int
    ) {
        if let entry = nodes[index].memory[key] ?? nodes[index].index[key],
            effect(on: entry, index) == nil, clock(index) < entry.freshUntil
        {
            let use = fencedUse(entry.validatedAt, index)
            if use == .asAlways || use == .asAlwaysUntil(entry.validatedAt + Self.fence) {
                let held = Reply.held(
                    version: entry.version, freshFor: entry.freshUntil - clock(index),
                    validationAge: clock(index) - entry.validatedAt)
                return send(.reply(ask, held), from: index, to: from)
            }
        }
        let nothing: OwnerSearch.Reply = question == .probe ? .absent : .fetchYourself
        send(.reply(ask, .said(nothing)), from: index, to: from)
    }

    private mutating func replied(_ ask: UInt64, _ reply: Reply, from: Int, at index: Int) {
        let fills = nodes[index].fills
        for (number, fill) in zip(fills.keys, fills.values) {
            guard let question = fill.questions[from], question.ask == ask else { continue }
            let node = nodes[from].id
            switch reply {
            case .held(let version, let freshFor, let age):
                let validatedAt = question.sentAt - age
                let entry = SimulatedEntry(
                    key: fill.key, version: version, stamp: question.stamp,
                    freshUntil: question.sentAt + freshFor, validatedAt: validatedAt)
                nodes[index].fills[number]?.questions[from]?.held = entry
                heard(.held, from: node, of: fill, index, number)
            case .said(let said):
                if said != .fetching { nodes[index].fills[number]?.questions[from] = nil }
                heard(said, from: node, of: fill, index, number)
            }
            return
        }
    }

    /// What was offered is asked for at the one who offers it, and at nobody else.
    private mutating func heard(
        _ reply: OwnerSearch.Reply, from node: NodeID, of fill: SimulatedFill, _ index: Int,
        _ number: UInt64
    ) {
        guard fill.lookup.step == .begun else {
            return tell(index, number) { $0.replied(node, reply, $1, effects: &$2) }
        }
        if reply == .held {
            take(from: node, index, number)
        } else if reply != .fetching {
            end(index, number)
        }
    }

    /// The connection is gone: whoever was asked on it does not answer, and need not be answered.
    mutating func lost(_ index: Int, _ other: Int) {
        let id = nodes[other].id
        let fills = nodes[index].fills
        for (number, fill) in zip(fills.keys, fills.values) {
            nodes[index].fills[number]?.leave {
                if case .peer(other, _) = $0 { true } else { false }
            }
            guard fill.questions[other] != nil else { continue }
            nodes[index].fills[number]?.questions[other] = nil
            if fill.lookup.step == .begun {
                end(index, number)
            } else {
                tell(index, number) { $0.lost(id, $1, effects: &$2) }
            }
        }
    }

    // MARK: Offers

    /// Holders offer what they hold to owners that may lack it.
    mutating func offerAll(_ index: Int, _ path: EntryPath) {
        for key in keys.indices {
            guard let entry = nodes[index].memory[key] ?? nodes[index].index[key],
                effect(on: entry, index) == nil
            else { continue }
            for owner in owners(of: key, seenBy: index).prefix(2) where owner != index {
                send(.offer(key: key, path), from: index, to: owner)
            }
        }
    }

    /// All bytes enter a node because it asked for them.
    private mutating func offered(_ key: Int, _ path: EntryPath, from: Int, at index: Int) {
        guard nodes[index].memory[key] == nil, nodes[index].index[key] == nil,
            nodes[index].current[key] == nil, isCurrent(index)
        else { return }
        fetch(index, key, held: nil, for: nil, from: (from, path))
    }
}
