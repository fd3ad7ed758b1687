import Cluster
import Ground

/// The model of a cluster for an exhaustive search: the actions possible in a state, and their
/// effects.
///
/// Records of a stream are read in order, from the writer or from another holder, which makes no
/// difference to the reader. A crash and the next start are one step: a node that is down does
/// nothing, and any node may do nothing at any time. So lossy links, partitions and pauses need no
/// steps of their own.
struct VoterModel: Sendable {
    typealias Event = VoterModelTables.Event

    let bounds: VoterModelBounds
    let flaw: VoterModelMutation?
    private(set) var tables = VoterModelTables()

    init(_ bounds: VoterModelBounds, flaw: VoterModelMutation?) {
        self.bounds = bounds
        self.flaw = flaw
    }

    /// Returns the initial states: for each size one, in which all nodes follow one settled set and
    /// nodes outside it have caught up.
    mutating func starts() -> [VoterModelState] {
        bounds.firstSets.compactMap { size in
            let members = (0..<size).map(VoterModelTables.node)
            guard
                let first = VoterSet(
                    founder: members[0], generation: UInt64(size), members: members)
            else { return nil }
            let nodes = (0..<bounds.nodes).map { place in
                tables.number(
                    of: VoterModelNode(
                        own: VoterModelTables.node(place), following: first,
                        isCandidate: bounds.hasPurge, flaw: flaw))
            }
            return VoterModelState(
                nodes: nodes, first: tables.number(of: first),
                lastGeneration: size + bounds.changes)
        }
    }

    // MARK: Steps

    /// Performs an action and adds the possible following states to `next`, none if nothing
    /// changes.
    ///
    /// - Returns: The invariant that is broken; `nil` if none.
    mutating func apply(
        _ move: VoterModelAction, from state: VoterModelState, into next: inout [VoterModelState]
    ) -> VoterModelInvariant? {
        var state = state
        let (place, event) = event(move, &state)
        if case .crash(_, let forgets) = move {
            crash(place, forgets: forgets, &state)
        } else {
            let old = state.nodes[place]
            let outcome = tables.outcome(of: event, at: old)
            state.nodes[place] = outcome.node
            if let record = outcome.record {
                if let law = synced(record, by: place, &state) { return law }
            } else if old == outcome.node, !move.isReading {
                return nil
            }
        }
        return successors(state, into: &next)
    }

    /// Returns the acting node and the event of an action, and charges the action to its bound.
    private func event(_ move: VoterModelAction, _ state: inout VoterModelState) -> (Int, UInt32) {
        switch move {
        case .purge(let node):
            state.purge = .issued
            return (Int(node), Event.purged)
        case .readPurge(let node): return (Int(node), Event.purged)
        case .sync(let node): return (Int(node), Event.synced)
        case .read(let node, let number):
            let (place, stream) = (Int(node), Int(number))
            let record = state.streams[stream].records[Int(state.streams[stream].read[place])]
            state.streams[stream].read[place] += 1
            return (place, Event.with(Event.read, 0, record))
        case .request(let node, let member):
            let response = nodeFacts(Int(member), state).answer
            return (Int(node), Event.with(Event.responded, Int(member), response))
        case .requestDelayed(let node, let member):
            state.delayedResponses += 1
            let response = nodeFacts(Int(member), state).answer
            return (Int(node), Event.with(Event.respondedLate, Int(member), response))
        case .receiveDelayed(let node): return (Int(node), Event.delayedReceived)
        case .add(let node, let other):
            state.ballots += 1
            return (Int(node), Event.with(Event.addBegun, Int(other)))
        case .remove(let node, let other):
            state.ballots += 1
            return (Int(node), Event.with(Event.removeBegun, Int(other)))
        case .repeatVote(let node): return (Int(node), Event.voteRepeated)
        case .removeByOperator(let node, let gone):
            state.operatorChanges += 1
            return (Int(node), Event.with(Event.removalOrdered, Int(gone)))
        case .crash(let node, _):
            state.crashes += 1
            return (Int(node), 0)
        }
    }

    /// Returns the facts about a node's state.
    func nodeFacts(_ place: Int, _ state: VoterModelState) -> VoterModelTables.NodeFacts {
        tables.nodes[Int(state.nodes[place])]
    }

    /// Restarts a node from the records of its own streams and, unless `forgets`, those that it has
    /// read; its next records begin a stream.
    private mutating func crash(_ place: Int, forgets: Bool, _ state: inout VoterModelState) {
        var log: [UInt16] = []
        if flaw == .lostVote, let last = state.streams.lastIndex(where: { $0.writer == place }),
            let record = state.streams[last].records.last, isVote(record)
        {
            state.streams[last].records.removeLast()
            for reader in state.nodes.indices {
                let count = UInt8(state.streams[last].records.count)
                state.streams[last].read[reader] = min(state.streams[last].read[reader], count)
            }
        }
        for stream in state.streams.indices {
            if state.streams[stream].writer == place {
                log += state.streams[stream].records
            } else if forgets {
                state.streams[stream].read[place] = 0
            } else {
                let read = Int(state.streams[stream].read[place])
                log += state.streams[stream].records.prefix(read)
            }
        }
        let records = log.map { tables.recordValues[Int($0)] }
        state.nodes[place] = tables.number(
            of: tables.nodeValues[Int(state.nodes[place])].restarted(replaying: records))
        let read = [UInt8](repeating: 0, count: state.nodes.count)
        state.streams.append(VoterModelState.RecordStream(writer: place, read: read))
    }

    /// Returns true if the record is a vote.
    private func isVote(_ record: UInt16) -> Bool { tables.records[Int(record)].next != nil }

    // MARK: Global facts

    /// Appends a synced record to the writer's last stream and counts the votes if it is one;
    /// returns the invariant that is broken, `nil` if none.
    private func synced(
        _ record: UInt16, by place: Int, _ state: inout VoterModelState
    ) -> VoterModelInvariant? {
        guard let stream = state.streams.lastIndex(where: { $0.writer == place }) else {
            return nil
        }
        state.streams[stream].records.append(record)
        return isVote(record) ? tallyVotes(tables.records[Int(record)], &state) : nil
    }

    /// Counts the votes after a vote was synced; the voted set is decided by a majority.
    private func tallyVotes(
        _ vote: VoterModelTables.RecordFacts, _ state: inout VoterModelState
    ) -> VoterModelInvariant? {
        guard let next = vote.next else { return nil }
        var voters: UInt8 = 0
        for record in state.streams.lazy.flatMap(\.records) {
            let other = tables.records[Int(record)]
            if other.next != nil, other.base == vote.base, other.ballot == vote.ballot {
                voters |= 1 << other.member
            }
        }
        let set = tables.sets[Int(vote.base)].mask & ~vote.without
        guard (voters & set).nonzeroBitCount * 2 > set.nonzeroBitCount else { return nil }
        let place = vote.generation + 1 - tables.sets[Int(state.decided[0])].generation
        if place < state.decided.count { return state.decided[place] == next ? nil : .agreement }
        guard place == state.decided.count, state.decided.last == vote.base else {
            return .agreement
        }
        state.decided.append(next)
        return nil
    }

    /// Returns true if a majority of the newest decided set has synced the purge.
    private func isDurable(_ state: VoterModelState) -> Bool {
        guard let newest = state.decided.last else { return false }
        let mask = tables.sets[Int(newest)].mask
        let holders = state.nodes.indices.count {
            mask & 1 << $0 != 0 && nodeFacts($0, state).hasSynced
        }
        return holders * 2 > mask.nonzeroBitCount
    }

    /// Adds the normalised successors of a state to `next`, or returns the invariant that it
    /// breaks.
    ///
    /// Once the purge is durable, there is one for each node that may lack it.
    private mutating func successors(
        _ state: VoterModelState, into next: inout [VoterModelState]
    ) -> VoterModelInvariant? {
        var states = [state]
        if state.purge == .issued, isDurable(state) {
            states = state.nodes.indices.filter { !nodeFacts($0, state).hasSynced }.map { place in
                observe(place, in: state)
            }
        }
        for var state in states {
            for place in state.nodes.indices {
                if let law = violatedInvariant(nodeFacts(place, state), state) { return law }
            }
            skipIrrelevantRecords(&state)
            removeOldRecords(&state)
            next.append(state)
        }
        return nil
    }

    /// Returns the state in which the purge is durable, and the node `watched` is checked for it.
    private mutating func observe(_ watched: Int, in state: VoterModelState) -> VoterModelState {
        var state = state
        state.purge = .durable(watched: watched)
        for place in state.nodes.indices {
            let event = place == watched ? Event.observed : Event.notObserved
            state.nodes[place] = tables.outcome(of: event, at: state.nodes[place]).node
        }
        return state
    }

    /// Returns the invariant that a node's state breaks; `nil` if none.
    private func violatedInvariant(
        _ node: VoterModelTables.NodeFacts, _ state: VoterModelState
    ) -> VoterModelInvariant? {
        if node.breaksPromise { return .fence }
        let place = node.generation - tables.sets[Int(state.decided[0])].generation
        guard !node.isContradicted, state.decided.indices.contains(place),
            state.decided[place] == node.set
        else { return .agreement }
        return nil
    }

    // MARK: Reduction of the state space

    /// Skips records that have no effect on their reader.
    private func skipIrrelevantRecords(_ state: inout VoterModelState) {
        for stream in state.streams.indices {
            let records = state.streams[stream].records
            for place in state.nodes.indices where place != state.streams[stream].writer {
                var read = Int(state.streams[stream].read[place])
                guard read < records.count else { continue }
                let (node, old) = (nodeFacts(place, state), read)
                while read < records.count, !isRelevant(records[read], to: node, at: place) {
                    read += 1
                }
                if read != old { state.streams[stream].read[place] = UInt8(read) }
            }
        }
    }

    /// Returns true if a record may have an effect on the node.
    ///
    /// Such are votes on the set or the one before while those matter, requests for promises,
    /// promises to this node, and records that show that the set is settled or outdated.
    private func isRelevant(
        _ record: UInt16, to node: VoterModelTables.NodeFacts, at place: Int
    ) -> Bool {
        let record = tables.records[Int(record)]
        if record.generation > node.generation { return true }
        if record.base == node.previous { return record.next != nil }
        guard record.generation == node.generation else { return false }
        return record.base != node.set || record.next != nil || node.previous != nil
            || record.owner == place || record.owner == record.member
    }

    /// Removes records on sets that all nodes have left behind, which is safe once no crash is
    /// left.
    private func removeOldRecords(_ state: inout VoterModelState) {
        guard state.crashes == bounds.crashes else { return }
        var oldest = Int.max
        for place in state.nodes.indices {
            let node = nodeFacts(place, state)
            oldest = min(oldest, node.generation - (node.previous == nil ? 0 : 1))
            oldest = min(oldest, node.oldestWaiting)
        }
        while state.decided.count > 1,
            tables.sets[Int(state.decided[0])].generation < oldest
        {
            state.decided.removeFirst()
        }
        for stream in state.streams.indices {
            let writer = state.streams[stream].writer
            while let first = state.streams[stream].records.first,
                tables.records[Int(first)].generation < oldest,
                state.nodes.indices.allSatisfy({
                    $0 == writer || state.streams[stream].read[$0] > 0
                })
            {
                state.streams[stream].records.removeFirst()
                for place in state.nodes.indices where place != writer {
                    state.streams[stream].read[place] -= 1
                }
            }
        }
    }
}
