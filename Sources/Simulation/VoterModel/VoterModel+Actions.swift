import Cluster
import Ground

/// The possible actions in a state, and their description in traces.
extension VoterModel {
    /// Returns every action that a state allows; some may have no effect.
    func moves(in state: VoterModelState) -> [VoterModelAction] {
        guard !isOver(state) else { return [] }
        var moves: [VoterModelAction] = []
        let isOnDisk = state.nodes.indices.contains { nodeFacts($0, state).hasSynced }
        for place in state.nodes.indices {
            let (node, index) = (nodeFacts(place, state), UInt8(place))
            if node.isWaiting { moves.append(.sync(index)) }
            if bounds.hasPurge, !node.hasApplied {
                if state.purge == .notIssued {
                    moves.append(.purge(index))
                } else if isOnDisk {
                    moves.append(.readPurge(index))
                }
            }
            for (number, stream) in state.streams.enumerated()
            where stream.writer != place && Int(stream.read[place]) < stream.records.count {
                moves.append(.read(index, stream: UInt8(number)))
            }
            for other in state.nodes.indices where other != place {
                moves.append(.request(index, UInt8(other)))
                if state.delayedResponses < bounds.delayedResponses, !node.hasLateAnswer {
                    moves.append(.requestDelayed(index, UInt8(other)))
                }
            }
            if node.hasLateAnswer { moves.append(.receiveDelayed(index)) }
            if bounds.hasRepeatedVotes, let previous = node.previous, !node.hasRepeatedVote,
                tables.sets[Int(previous)].mask & 1 << index != 0
            {
                moves.append(.repeatVote(index))
            }
            moves += ballots(of: place, node, in: state)
            if state.crashes < bounds.crashes {
                moves.append(.crash(index, forgets: false))
                moves.append(.crash(index, forgets: true))
            }
        }
        return moves
    }

    /// Returns the ballots and the operator's removals that may start at a node.
    private func ballots(
        of place: Int, _ node: VoterModelTables.NodeFacts, in state: VoterModelState
    ) -> [VoterModelAction] {
        let (index, set) = (UInt8(place), tables.sets[Int(node.set)].mask)
        guard node.generation < state.lastGeneration, set & 1 << index != 0 else { return [] }
        var moves: [VoterModelAction] = []
        if place < bounds.proposers, state.ballots < bounds.ballots, node.previous == nil {
            for other in UInt8(0)..<UInt8(bounds.nodes) {
                moves.append(
                    set & 1 << other == 0 ? .add(index, other) : .remove(index, other))
            }
        }
        if state.operatorChanges < bounds.operatorChanges {
            let others = set & ~(1 << index)
            for gone in UInt8(1)..<16
            where gone & others == gone && gone.nonzeroBitCount > 1 {
                moves.append(.removeByOperator(index, without: gone))
            }
        }
        return moves
    }

    /// Returns true if the fence can no longer be broken, so that the search without a purge covers
    /// all that follows.
    private func isOver(_ state: VoterModelState) -> Bool {
        switch state.purge {
        case .notIssued: false
        case .issued: !state.nodes.indices.contains { nodeFacts($0, state).hasApplied }
        case .durable(let watched):
            nodeFacts(watched, state).hasSynced
                || nodeFacts(watched, state).hasApplied && state.crashes == bounds.crashes
        }
    }

    // MARK: Traces

    /// Returns the description of an action in a trace.
    func description(of move: VoterModelAction, in state: VoterModelState) -> String {
        func name(_ place: UInt8) -> String { VoterModelNodeName.node(Int(place)) }
        switch move {
        case .purge(let node): return "\(name(node)) issues the purge"
        case .readPurge(let node): return "\(name(node)) reads the purge"
        case .sync(let node):
            guard let item = tables.nodeValues[Int(state.nodes[Int(node)])].pendingWrites.first
            else {
                return "\(name(node)) syncs nothing"
            }
            return "\(name(node)) has synced \(description(of: item))"
        case .read(let node, let stream):
            let records = state.streams[Int(stream)].records
            let record = records[Int(state.streams[Int(stream)].read[Int(node)])]
            let item = VoterModelNode.WrittenItem.record(tables.recordValues[Int(record)])
            let writer = VoterModelNodeName.node(state.streams[Int(stream)].writer)
            return "\(name(node)) reads \(description(of: item)) of \(writer)"
        case .request(let node, let member): return "\(name(node)) asks \(name(member))"
        case .requestDelayed(let node, let member):
            return "\(name(node)) asks \(name(member)), whose answer is late"
        case .receiveDelayed(let node): return "\(name(node)) has the late answer"
        case .add(let node, let other):
            return "\(name(node)) begins a ballot: count \(name(other))"
        case .remove(let node, let other):
            return "\(name(node)) begins a ballot: forget \(name(other))"
        case .repeatVote(let node): return "\(name(node)) votes again"
        case .removeByOperator(let node, let gone):
            return "\(name(node)) is ordered to forget \(VoterModelNodeName.nodes(gone))"
        case .crash(let node, let forgets):
            return "\(name(node)) crashes" + (forgets ? " and forgets what it has read" : "")
        }
    }

    /// Returns the description of a write.
    private func description(of item: VoterModelNode.WrittenItem) -> String {
        guard case .record(let record) = item else { return "the purge" }
        let owner =
            record.ballot.isRepeated
            ? "again" : VoterModelNodeName.node(VoterModelTables.place(record.ballot.proposer))
        let ballot = "\(record.ballot.round)\(owner) on \(description(of: record.base))"
        switch record.body {
        case .joined: return "a join"
        case .promise: return "a promise to \(ballot)"
        case .vote(let change, let holds):
            let next = record.base.applying(by: change).map { description(of: $0) }
            let named = holds.isEmpty ? "" : ", naming the purge"
            return "a vote in \(ballot) for \(next ?? "nothing")\(named)"
        }
    }

    /// Returns the members of a set.
    private func description(of set: VoterSet) -> String {
        VoterModelNodeName.nodes(VoterModelTables.mask(set.members))
    }

    /// Returns the voter set of each node, for the end of a trace.
    func description(of state: VoterModelState) -> String {
        state.nodes.indices.map { place in
            let node = nodeFacts(place, state)
            let set = VoterModelNodeName.nodes(tables.sets[Int(node.set)].mask)
            return "\(VoterModelNodeName.node(place)): \(set)"
                + (node.previous == nil ? "" : " unsettled") + (node.hasApplied ? " P" : "")
        }.joined(separator: ", ")
    }
}
