package import Ground

/// A search among peers for a response that this node has neither in memory nor on disk; it ends at
/// a peer or at the origin (Design, "Owners and the path of a miss").
///
/// A node that does not own the key sends a *get* to the first owner and waits for as long as this
/// owner reports that it is fetching. After a silence, the next owner receives a *probe*, which
/// starts no fetch, and a *get* once the first owner is skipped. The owner itself probes all
/// possible former owners at once, with a short timeout, and then asks the origin.
///
/// The receiver of a query never forwards it, so inconsistent views cost a fetch but cannot form a
/// loop. Whatever peers do, the search ends with the response of one of them or with the origin.
package struct OwnerSearch: Sendable {
    /// One of the nodes that prefer the key, as known when the search starts.
    package struct Candidate: Hashable, Sendable {
        /// The id of the node.
        package var node: NodeID
        /// True if there is a connection to the node and it is not suspected; ignored for this
        /// node.
        package var isReachable: Bool

        /// Creates a candidate from its parts.
        package init(_ node: NodeID, isReachable: Bool) {
            self.node = node
            self.isReachable = isReachable
        }
    }

    /// The kinds of query to a peer.
    package enum QueryKind: Hashable, Sendable {
        /// Deliver the response, fetching it if necessary.
        case get
        /// Deliver the response only if it is stored or already arriving.
        case probe
    }

    /// The replies of a peer to a query.
    package enum Reply: Hashable, Sendable {
        /// The peer has a response head, and the body follows.
        case found
        /// The peer waits for the origin, and repeats this reply at intervals. Never sent while it
        /// waits for a peer, because two nodes might then wait for each other.
        case fetching
        /// The peer has nothing; sent in reply to a probe.
        case notFound
        /// The requester must ask the origin: the response is not shareable, or the peer has no
        /// space for it.
        case declined
        /// The peer lacks invalidations that the requester has applied.
        case lagging
        /// The origin could not be reached or did not respond.
        case originFailed
        /// The origin responded with an error, which follows.
        case originErrorResponse
    }

    /// The actions for the shell after an event.
    package enum Effect: Hashable, Sendable {
        /// Send a query of this kind to the node.
        case sendQuery(NodeID, QueryKind)
        /// Cancel the query to the node; its further replies are ignored.
        case cancelQuery(NodeID)
        /// Use the response of the node. Final.
        case acceptResponse(NodeID)
        /// Ask the origin. Final.
        case fetchFromOrigin
    }

    /// The silence after which the second owner is probed: more than two of the intervals at which
    /// a fetching node repeats its reply, ``PeerReply/fetchingRepeatInterval``.
    package static let probeDelay = Interval.milliseconds(600)
    /// The silence after which an owner is skipped, whatever its state in the membership.
    package static let ownerTimeout = Interval.seconds(3)
    /// The maximum time to wait for an owner's probes.
    ///
    /// Busy peers reply late, most of all while a node joins because they are busy; what they hold
    /// should not be fetched from the origin for that reason.
    package static let probeTimeout = Interval.milliseconds(250)
    /// The number of skipped owners after which this node acts as the owner.
    package static let skippedOwnersMax = 3

    enum State: Hashable, Sendable {
        case notStarted
        /// This node acts as the owner. `nodes` have not replied to their probes; `fetcher`, if
        /// any, waits for the origin.
        case probing(nodes: [NodeID], until: Instant, fetcher: NodeID?)
        /// This node acts as the owner and waits for another node that had already asked the
        /// origin.
        case awaitingFetcher(NodeID, lastReplyAt: Instant)
        /// The owner has the get and last replied at `lastReplyAt`; `probedIndex` is the owner
        /// whose probe is unanswered.
        case awaitingOwner(ownerIndex: Int, lastReplyAt: Instant, probedIndex: Int?)
        case finished
    }

    let localNode: NodeID
    /// The nodes that prefer the key, in order; their reachability is updated.
    var preference: [Candidate]
    /// Maximum number of these nodes that an owner probes.
    let probesMax: Int
    /// Nodes that no longer own keys and hand off what they hold; an owner probes them too.
    let drainingNodes: [NodeID]
    var state = State.notStarted
    /// The number of owners that were skipped.
    var skippedOwnerCount = 0
    /// True if the probe that the current owner's silence causes has already been sent.
    var isProbeDue = false

    /// Creates a search that has not started.
    ///
    /// - Parameters:
    ///   - me: this node, which may be in `preference` or not.
    ///   - preference: the nodes that prefer the key, in order.
    ///   - lookback: how many of these an owner probes.
    ///   - leaving: draining nodes, not in `preference`, which an owner probes as well.
    package init(
        me: NodeID, preference: [Candidate], lookback: Int, leaving: [NodeID] = []
    ) {
        self.drainingNodes = leaving
        self.localNode = me
        self.preference = preference
        self.probesMax = lookback
    }

    /// True once a final effect was returned or the search was cancelled.
    package var isFinished: Bool { state == .finished }

    /// True while this node acts as the owner and waits for the replies to its probes.
    package var isProbing: Bool { if case .probing = state { true } else { false } }

    /// When to call ``ticked(_:effects:)``; `nil` for never.
    package var deadline: Instant? {
        switch state {
        case .notStarted, .finished: nil
        case .probing(_, let until, _): until
        case .awaitingFetcher(_, let heardAt): heardAt + Self.probeDelay
        case .awaitingOwner(_, let heardAt, let probed):
            heardAt + (probed == nil && !isProbeDue ? Self.probeDelay : Self.ownerTimeout)
        }
    }
}

// MARK: - Events

extension OwnerSearch {
    /// Starts the search; does nothing if it has started.
    package mutating func started(_ now: Instant, effects: inout [Effect]) {
        guard state == .notStarted else { return }
        queryNextOwner(from: 0, now, &effects)
    }

    /// Records a reply of `node`; replies from nodes that have no query are ignored.
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

    /// Records that the connection to `node` was lost, or that it is suspected: its query, if any,
    /// is cancelled, and the search continues without it.
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

    /// Makes this node act as the owner, because a peer queries it for the same key; without effect
    /// unless the search waits for an owner.
    ///
    /// Queries to owners are cancelled, since an owner may be waiting for this node.
    package mutating func becameOwner(_ now: Instant, effects: inout [Effect]) {
        guard case .awaitingOwner(let owner, _, let probed) = state else { return }
        effects.append(.cancelQuery(preference[owner].node))
        if let probed { effects.append(.cancelQuery(preference[probed].node)) }
        actAsOwner(now, &effects)
    }

    /// Starts the search with this node acting as the owner; does nothing if it has started.
    package mutating func startedAsOwner(_ now: Instant, effects: inout [Effect]) {
        guard state == .notStarted else { return }
        actAsOwner(now, &effects)
    }

    /// Applies the timeouts that are due at `now`: gives up unanswered probes, probes the next
    /// owner, skips an owner, or asks the origin.
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
            isProbeDue = true
            guard let next = nextOwner(after: owner) else { return }
            effects.append(.sendQuery(preference[next].node, .probe))
            state = .awaitingOwner(ownerIndex: owner, lastReplyAt: heardAt, probedIndex: next)
        }
    }

    /// Cancels all queries, because the response is no longer wanted.
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
    /// Sends the get to the first reachable owner from `start`, or acts as the owner if this node
    /// is it.
    mutating func queryNextOwner(from start: Int, _ now: Instant, _ effects: inout [Effect]) {
        var index = start
        while index < preference.count, skippedOwnerCount < Self.skippedOwnersMax {
            let candidate = preference[index]
            if candidate.node == localNode { break }
            if candidate.isReachable {
                effects.append(.sendQuery(candidate.node, .get))
                state = .awaitingOwner(ownerIndex: index, lastReplyAt: now, probedIndex: nil)
                isProbeDue = false
                return
            }
            skippedOwnerCount += 1
            index += 1
        }
        actAsOwner(now, &effects)
    }

    /// Probes the possible former owners with this node acting as the owner.
    mutating func actAsOwner(_ now: Instant, _ effects: inout [Effect]) {
        let reachable = preference.filter { $0.isReachable && $0.node != localNode }
        let asked = reachable.prefix(probesMax).map(\.node) + drainingNodes
        effects += asked.map { .sendQuery($0, .probe) }
        awaitProbes(to: asked, until: now + Self.probeTimeout, nil, now, &effects)
    }

    /// Waits for the replies of `asked`, then for `fetcher`; asks the origin if there is neither.
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

    /// Processes a reply of the current owner: anything but a response or `fetching` leads to the
    /// origin.
    mutating func ownerReplied(
        _ reply: Reply, _ owner: Int, _ probed: Int?, _ now: Instant, _ effects: inout [Effect]
    ) {
        let others = probed.map { [preference[$0].node] } ?? []
        switch reply {
        case .fetching:
            state = .awaitingOwner(ownerIndex: owner, lastReplyAt: now, probedIndex: probed)
            if probed == nil { isProbeDue = false }
        case .found, .originErrorResponse:
            acceptResponse(preference[owner].node, cancelling: others, &effects)
        case .notFound, .declined, .lagging, .originFailed:
            effects += others.map { .cancelQuery($0) }
            finish(.fetchFromOrigin, &effects)
        }
    }

    /// Processes a reply of the next owner to its probe: only `found` ends the search, otherwise
    /// the current owner stays in charge.
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

    /// Cancels the queries in progress and continues with the owner after `owner`.
    mutating func skipOwner(
        _ owner: Int, _ probed: Int?, _ now: Instant, _ effects: inout [Effect]
    ) {
        effects.append(.cancelQuery(preference[owner].node))
        if let probed { effects.append(.cancelQuery(preference[probed].node)) }
        preference[owner].isReachable = false
        skippedOwnerCount += 1
        queryNextOwner(from: owner + 1, now, &effects)
    }

    /// Returns the index of the next reachable owner, this node excepted; `nil` if there is none.
    func nextOwner(after owner: Int) -> Int? {
        preference.indices.first {
            $0 > owner && preference[$0].isReachable && preference[$0].node != localNode
        }
    }

    /// Ends the search with the response of `node`, and cancels the queries to `others`.
    mutating func acceptResponse(
        _ node: NodeID, cancelling others: [NodeID], _ effects: inout [Effect]
    ) {
        effects += others.map { .cancelQuery($0) }
        finish(.acceptResponse(node), &effects)
    }

    /// Ends the search with a final effect.
    mutating func finish(_ effect: Effect, _ effects: inout [Effect]) {
        state = .finished
        effects.append(effect)
    }
}
