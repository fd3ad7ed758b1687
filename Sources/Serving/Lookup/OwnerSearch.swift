package import Ground

/// Where an image is to come from that this node has neither in memory nor on disk: from a peer, or
/// from the origin (DESIGN.md §7 "Owners and the path of a miss").
///
/// A node that does not own the key asks the first owner with *get* and waits for as long as that
/// one says that it is fetching. Only silence is slow: then the next owner gets a *probe*, which
/// starts nothing, and a *get* once the first is believed gone. The owner itself probes those who
/// may have owned the key before, all at once and shortly, and then asks the origin.
///
/// A question is never passed on by whoever gets it, so views that differ cost a fetch and no loop.
/// However peers behave, the search ends with an answer of one of them or with the origin.
package struct OwnerSearch: Sendable {
    /// One of the nodes that prefer the key, as this node sees it when the search begins.
    package struct Candidate: Hashable, Sendable {
        package var node: NodeID
        /// There is a connection to it, and nobody suspects it.
        ///
        /// Of this node itself it is not looked at.
        package var isReachable: Bool

        package init(_ node: NodeID, isReachable: Bool) {
            self.node = node
            self.isReachable = isReachable
        }
    }

    /// What a peer is asked.
    package enum QueryKind: Hashable, Sendable {
        /// Give it; fetch it if you have to.
        case get
        /// Give it if you have it, or are being given it.
        case probe
    }

    /// What a peer says first of a key, or next.
    package enum Reply: Hashable, Sendable {
        /// It has the head of an answer, and the body follows.
        case found
        /// It waits for the origin, and says so again and again; never while it waits for a peer,
        /// or two nodes might wait for each other.
        case fetching
        /// To a probe: it has nothing.
        case notFound
        /// Whoever asked is to ask the origin: what came may not be shared, or it has no room.
        case declined
        /// It lacks invalidations that whoever asked has applied.
        case lagging
        /// The origin could not be asked, or did not answer.
        case originFailed
        /// The origin's answer is an error for whoever asks.
        case originErrorResponse
    }

    package enum Effect: Hashable, Sendable {
        case sendQuery(NodeID, QueryKind)
        /// What it still says is not wanted.
        case cancelQuery(NodeID)
        /// Its answer is the answer. Last.
        case acceptResponse(NodeID)
        /// The origin is to be asked. Last.
        case fetchFromOrigin
    }

    /// How long a first owner may say nothing before the next one is probed: more than two of its
    /// intervals.
    package static let probeDelay = Interval.milliseconds(600)
    /// How long it may say nothing before it is passed over, whatever is believed of it.
    package static let ownerTimeout = Interval.seconds(3)
    /// How often whoever fetches says so.
    package static let progressInterval = Interval.milliseconds(250)
    /// How long the probes of an owner are waited for: peers that are busy answer late, most of all
    /// while a node joins because they are, and what they hold is not to be fetched for that.
    package static let probeTimeout = Interval.milliseconds(250)
    /// Owners that are passed over, at most.
    package static let skippedOwnersMax = 2

    enum State: Hashable, Sendable {
        case notStarted
        /// This node acts as the owner; its probes are out to those that have not answered, and
        /// `fetcher` waits for the origin.
        case probing(nodes: [NodeID], until: Instant, fetcher: NodeID?)
        /// This node acts as the owner, and another one had asked the origin before.
        case awaitingFetcher(NodeID, lastReplyAt: Instant)
        /// `owner` has the get, and was heard last at `heardAt`; `probed` has a probe that it has
        /// not answered.
        case awaitingOwner(ownerIndex: Int, lastReplyAt: Instant, probedIndex: Int?)
        case finished
    }

    let localNode: NodeID
    var preference: [Candidate]
    let probesMax: Int
    /// Nodes that own nothing any more and hand over what they hold: an owner asks them, too.
    let drainingNodes: [NodeID]
    var state = State.notStarted
    /// Owners before this one were passed over.
    var skippedOwnerCount = 0
    /// The one that was probed for the silence of the one before it, and had nothing.
    var isNextOwnerProbed = false

    /// A search for a key that `preference` prefer, in that order.
    ///
    /// This node, `me`, may be among them or not. `lookback` is how many of them an owner probes,
    /// beside those `leaving`, who are none of them.
    package init(
        me: NodeID, preference: [Candidate], lookback: Int, leaving: [NodeID] = []
    ) {
        self.drainingNodes = leaving
        self.localNode = me
        self.preference = preference
        self.probesMax = lookback
    }

    /// True once a last effect was given.
    package var isFinished: Bool { state == .finished }

    /// This node acts as the owner, and waits for answers to its probes.
    package var isProbing: Bool { if case .probing = state { true } else { false } }

    /// When ``ticked(_:effects:)`` is to be called; nil if not at all.
    package var deadline: Instant? {
        switch state {
        case .notStarted, .finished: nil
        case .probing(_, let until, _): until
        case .awaitingFetcher(_, let heardAt): heardAt + Self.probeDelay
        case .awaitingOwner(_, let heardAt, let probed):
            heardAt + (probed == nil && !isNextOwnerProbed ? Self.probeDelay : Self.ownerTimeout)
        }
    }
}

// MARK: - Events

extension OwnerSearch {
    package mutating func started(_ now: Instant, effects: inout [Effect]) {
        guard state == .notStarted else { return }
        queryNextOwner(from: 0, now, &effects)
    }

    package mutating func replied(
        _ node: NodeID, _ reply: Reply, _ now: Instant, effects: inout [Effect]
    ) {
        switch state {
        case .notStarted, .finished: return
        case .probing(let asked, let until, var fetcher):
            guard asked.contains(node) || fetcher == node else { return }
            let others = asked.filter { $0 != node }
            if reply == .found {
                let rest = others + (fetcher.map { $0 == node ? [] : [$0] } ?? [])
                return acceptResponse(node, cancelling: rest, &effects)
            }
            if reply == .fetching, fetcher != nil, fetcher != node {
                effects.append(.cancelQuery(node))
            } else {
                fetcher = reply == .fetching ? node : fetcher == node ? nil : fetcher
            }
            awaitProbes(to: others, until: until, fetcher, now, &effects)
        case .awaitingFetcher(let fetcher, _):
            guard node == fetcher else { return }
            switch reply {
            case .found: acceptResponse(node, cancelling: [], &effects)
            case .fetching: state = .awaitingFetcher(node, lastReplyAt: now)
            default: finish(.fetchFromOrigin, &effects)
            }
        case .awaitingOwner(let owner, let heardAt, let probed):
            if let probed, preference[probed].node == node {
                probeReplied(reply, owner, heardAt, probed, &effects)
            } else if preference[owner].node == node {
                ownerReplied(reply, owner, probed, now, &effects)
            }
        }
    }

    /// The connection to `node` is gone, or it is suspected.
    package mutating func lost(_ node: NodeID, _ now: Instant, effects: inout [Effect]) {
        for index in preference.indices where preference[index].node == node {
            preference[index].isReachable = false
        }
        switch state {
        case .notStarted, .finished: return
        case .probing(let asked, let until, let fetcher):
            guard asked.contains(node) || fetcher == node else { return }
            effects.append(.cancelQuery(node))
            awaitProbes(
                to: asked.filter { $0 != node }, until: until, fetcher == node ? nil : fetcher,
                now, &effects)
        case .awaitingFetcher(let fetcher, _):
            guard node == fetcher else { return }
            effects.append(.cancelQuery(node))
            finish(.fetchFromOrigin, &effects)
        case .awaitingOwner(let owner, let heardAt, let probed):
            if preference[owner].node == node {
                skipOwner(owner, probed, now, &effects)
            } else if let probed, preference[probed].node == node {
                effects.append(.cancelQuery(node))
                state = .awaitingOwner(ownerIndex: owner, lastReplyAt: heardAt, probedIndex: nil)
            }
        }
    }

    /// A peer asks this node for the same: it acts as the owner, and no longer waits for one that
    /// may be waiting for it.
    package mutating func becameOwner(_ now: Instant, effects: inout [Effect]) {
        guard case .awaitingOwner(let owner, _, let probed) = state else { return }
        effects.append(.cancelQuery(preference[owner].node))
        if let probed { effects.append(.cancelQuery(preference[probed].node)) }
        actAsOwner(now, &effects)
    }

    /// The same of a search that has not begun.
    package mutating func startedAsOwner(_ now: Instant, effects: inout [Effect]) {
        guard state == .notStarted else { return }
        actAsOwner(now, &effects)
    }

    package mutating func ticked(_ now: Instant, effects: inout [Effect]) {
        guard let deadline, now >= deadline else { return }
        switch state {
        case .notStarted, .finished: return
        case .probing(let asked, _, let fetcher):
            effects += asked.map { .cancelQuery($0) }
            awaitProbes(to: [], until: now, fetcher, now, &effects)
        case .awaitingFetcher(let fetcher, _):
            effects.append(.cancelQuery(fetcher))
            finish(.fetchFromOrigin, &effects)
        case .awaitingOwner(let owner, let heardAt, let probed):
            guard now - heardAt < Self.ownerTimeout else {
                return skipOwner(owner, probed, now, &effects)
            }
            isNextOwnerProbed = true
            guard let next = nextOwner(after: owner) else { return }
            effects.append(.sendQuery(preference[next].node, .probe))
            state = .awaitingOwner(ownerIndex: owner, lastReplyAt: heardAt, probedIndex: next)
        }
    }

    /// Nobody wants the answer any more.
    package mutating func cancelled(effects: inout [Effect]) {
        switch state {
        case .notStarted, .finished: break
        case .probing(let asked, _, let fetcher):
            effects += (asked + (fetcher.map { [$0] } ?? [])).map { .cancelQuery($0) }
        case .awaitingFetcher(let fetcher, _): effects.append(.cancelQuery(fetcher))
        case .awaitingOwner(let owner, _, let probed):
            effects += ([owner] + (probed.map { [$0] } ?? [])).map {
                .cancelQuery(preference[$0].node)
            }
        }
        state = .finished
    }
}

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
