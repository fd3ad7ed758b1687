import Ground

// MARK: - Steps

extension OwnerSearch {
    /// The get goes to the first from `start` on that can be reached, if none is this node.
    mutating func queryNextOwner(from start: Int, _ now: Instant, _ effects: inout [Effect]) {
        var index = start
        while index < preference.count, skippedOwnerCount <= Self.skippedOwnersMax {
            let candidate = preference[index]
            if candidate.node == localNode { break }
            if candidate.isReachable {
                effects.append(.sendQuery(candidate.node, .get))
                state = .awaitingOwner(ownerIndex: index, lastReplyAt: now, probedIndex: nil)
                isNextOwnerProbed = false
                return
            }
            skippedOwnerCount += 1
            index += 1
        }
        actAsOwner(now, &effects)
    }

    /// This node acts as the owner.
    mutating func actAsOwner(_ now: Instant, _ effects: inout [Effect]) {
        let reachable = preference.filter { $0.isReachable && $0.node != localNode }
        let asked = reachable.prefix(probesMax).map(\.node) + drainingNodes
        effects += asked.map { .sendQuery($0, .probe) }
        awaitProbes(to: asked, until: now + Self.probeTimeout, nil, now, &effects)
    }

    mutating func awaitProbes(
        to asked: [NodeID], until: Instant, _ fetcher: NodeID?, _ now: Instant,
        _ effects: inout [Effect]
    ) {
        if !asked.isEmpty {
            state = .probing(nodes: asked, until: until, fetcher: fetcher)
        } else if let fetcher {
            state = .awaitingFetcher(fetcher, lastReplyAt: now)
        } else {
            finish(.fetchFromOrigin, &effects)
        }
    }

    mutating func ownerReplied(
        _ reply: Reply, _ owner: Int, _ probed: Int?, _ now: Instant, _ effects: inout [Effect]
    ) {
        let others = probed.map { [preference[$0].node] } ?? []
        switch reply {
        case .fetching:
            state = .awaitingOwner(ownerIndex: owner, lastReplyAt: now, probedIndex: probed)
            if probed == nil { isNextOwnerProbed = false }
        case .found, .originErrorResponse:
            acceptResponse(preference[owner].node, cancelling: others, &effects)
        case .notFound, .declined, .lagging, .originFailed:
            effects += others.map { .cancelQuery($0) }
            finish(.fetchFromOrigin, &effects)
        }
    }

    mutating func probeReplied(
        _ reply: Reply, _ owner: Int, _ heardAt: Instant, _ probed: Int,
        _ effects: inout [Effect]
    ) {
        switch reply {
        case .found:
            acceptResponse(preference[probed].node, cancelling: [preference[owner].node], &effects)
        case .fetching: return
        default: state = .awaitingOwner(ownerIndex: owner, lastReplyAt: heardAt, probedIndex: nil)
        }
    }

    mutating func skipOwner(
        _ owner: Int, _ probed: Int?, _ now: Instant, _ effects: inout [Effect]
    ) {
        effects.append(.cancelQuery(preference[owner].node))
        if let probed { effects.append(.cancelQuery(preference[probed].node)) }
        preference[owner].isReachable = false
        skippedOwnerCount += 1
        queryNextOwner(from: owner + 1, now, &effects)
    }

    /// The next that can be reached.
    func nextOwner(after owner: Int) -> Int? {
        preference.indices.first {
            $0 > owner && preference[$0].isReachable && preference[$0].node != localNode
        }
    }

    mutating func acceptResponse(
        _ node: NodeID, cancelling others: [NodeID], _ effects: inout [Effect]
    ) {
        effects += others.map { .cancelQuery($0) }
        finish(.acceptResponse(node), &effects)
    }

    mutating func finish(_ effect: Effect, _ effects: inout [Effect]) {
        state = .finished
        effects.append(effect)
    }
}
