import Ground

// MARK: - Steps

extension OwnerSearch {
    /// The get goes to the first from `start` on that can be reached, if none is this node.
    mutating func askNext(from start: Int, _ now: Instant, _ effects: inout [Effect]) {
        var index = start
        while index < preference.count, passedOver <= Self.passedOverMax {
            let candidate = preference[index]
            if candidate.node == me { break }
            if candidate.isReachable {
                effects.append(.ask(candidate.node, .get))
                state = .asking(owner: index, heardAt: now, probed: nil)
                isNextProbed = false
                return
            }
            passedOver += 1
            index += 1
        }
        own(now, &effects)
    }

    /// This node acts as the owner.
    mutating func own(_ now: Instant, _ effects: inout [Effect]) {
        let reachable = preference.filter { $0.isReachable && $0.node != me }
        let asked = reachable.prefix(lookback).map(\.node) + leaving
        effects += asked.map { .ask($0, .probe) }
        lookBack(to: asked, until: now + Self.lookbackTime, nil, now, &effects)
    }

    mutating func lookBack(
        to asked: [NodeID], until: Instant, _ fetcher: NodeID?, _ now: Instant,
        _ effects: inout [Effect]
    ) {
        if !asked.isEmpty {
            state = .lookingBack(to: asked, until: until, fetcher: fetcher)
        } else if let fetcher {
            state = .awaiting(fetcher, heardAt: now)
        } else {
            end(.fetch, &effects)
        }
    }

    mutating func ownerReplied(
        _ reply: Reply, _ owner: Int, _ probed: Int?, _ now: Instant, _ effects: inout [Effect]
    ) {
        let others = probed.map { [preference[$0].node] } ?? []
        switch reply {
        case .fetching:
            state = .asking(owner: owner, heardAt: now, probed: probed)
            if probed == nil { isNextProbed = false }
        case .held, .originRefused: take(preference[owner].node, cancelling: others, &effects)
        case .absent, .fetchYourself, .behind, .originFailed:
            effects += others.map { .cancel($0) }
            end(.fetch, &effects)
        }
    }

    mutating func probeReplied(
        _ reply: Reply, _ owner: Int, _ heardAt: Instant, _ probed: Int,
        _ effects: inout [Effect]
    ) {
        switch reply {
        case .held:
            take(preference[probed].node, cancelling: [preference[owner].node], &effects)
        case .fetching: return
        default: state = .asking(owner: owner, heardAt: heardAt, probed: nil)
        }
    }

    mutating func passOver(
        _ owner: Int, _ probed: Int?, _ now: Instant, _ effects: inout [Effect]
    ) {
        effects.append(.cancel(preference[owner].node))
        if let probed { effects.append(.cancel(preference[probed].node)) }
        preference[owner].isReachable = false
        passedOver += 1
        askNext(from: owner + 1, now, &effects)
    }

    /// The next that can be reached.
    func next(after owner: Int) -> Int? {
        preference.indices.first {
            $0 > owner && preference[$0].isReachable && preference[$0].node != me
        }
    }

    mutating func take(
        _ node: NodeID, cancelling others: [NodeID], _ effects: inout [Effect]
    ) {
        effects += others.map { .cancel($0) }
        end(.take(node), &effects)
    }

    mutating func end(_ effect: Effect, _ effects: inout [Effect]) {
        state = .ended
        effects.append(effect)
    }
}
