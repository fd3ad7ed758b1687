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
    package enum Question: Hashable, Sendable {
        /// Give it; fetch it if you have to.
        case get
        /// Give it if you have it, or are being given it.
        case probe
    }

    /// What a peer says first of a key, or next.
    package enum Reply: Hashable, Sendable {
        /// It has the head of an answer, and the body follows.
        case held
        /// It waits for the origin, and says so again and again; never while it waits for a peer,
        /// or two nodes might wait for each other.
        case fetching
        /// To a probe: it has nothing.
        case absent
        /// Whoever asked is to ask the origin: what came may not be shared, or it has no room.
        case fetchYourself
        /// It lacks invalidations that whoever asked has applied.
        case behind
        /// The origin could not be asked, or did not answer.
        case originFailed
        /// The origin's answer is an error for whoever asks.
        case originRefused
    }

    package enum Effect: Hashable, Sendable {
        case ask(NodeID, Question)
        /// What it still says is not wanted.
        case cancel(NodeID)
        /// Its answer is the answer. Last.
        case take(NodeID)
        /// The origin is to be asked. Last.
        case fetch
    }

    /// How long a first owner may say nothing before the next one is probed: more than two of its
    /// intervals.
    package static let silence = Interval.milliseconds(600)
    /// How long it may say nothing before it is passed over, whatever is believed of it.
    package static let silenceMax = Interval.seconds(3)
    /// How often whoever fetches says so.
    package static let fetchingInterval = Interval.milliseconds(250)
    /// How long the probes of an owner are waited for: peers that are busy answer late, most of all
    /// while a node joins because they are, and what they hold is not to be fetched for that.
    package static let lookbackTime = Interval.milliseconds(250)
    /// Owners that are passed over, at most.
    package static let passedOverMax = 2

    enum State: Hashable, Sendable {
        case notBegun
        /// This node acts as the owner; its probes are out to those that have not answered, and
        /// `fetcher` waits for the origin.
        case lookingBack(to: [NodeID], until: Instant, fetcher: NodeID?)
        /// This node acts as the owner, and another one had asked the origin before.
        case awaiting(NodeID, heardAt: Instant)
        /// `owner` has the get, and was heard last at `heardAt`; `probed` has a probe that it has
        /// not answered.
        case asking(owner: Int, heardAt: Instant, probed: Int?)
        case ended
    }

    let me: NodeID
    var preference: [Candidate]
    let lookback: Int
    /// Nodes that own nothing any more and hand over what they hold: an owner asks them, too.
    let leaving: [NodeID]
    var state = State.notBegun
    /// Owners before this one were passed over.
    var passedOver = 0
    /// The one that was probed for the silence of the one before it, and had nothing.
    var isNextProbed = false

    /// A search for a key that `preference` prefer, in that order.
    ///
    /// This node, `me`, may be among them or not. `lookback` is how many of them an owner probes,
    /// beside those `leaving`, who are none of them.
    package init(
        me: NodeID, preference: [Candidate], lookback: Int, leaving: [NodeID] = []
    ) {
        self.leaving = leaving
        self.me = me
        self.preference = preference
        self.lookback = lookback
    }

    /// True once a last effect was given.
    package var hasEnded: Bool { state == .ended }

    /// This node acts as the owner, and waits for answers to its probes.
    package var isProbing: Bool { if case .lookingBack = state { true } else { false } }

    /// When ``ticked(_:effects:)`` is to be called; nil if not at all.
    package var nextTick: Instant? {
        switch state {
        case .notBegun, .ended: nil
        case .lookingBack(_, let until, _): until
        case .awaiting(_, let heardAt): heardAt + Self.silence
        case .asking(_, let heardAt, let probed):
            heardAt + (probed == nil && !isNextProbed ? Self.silence : Self.silenceMax)
        }
    }
}

// MARK: - Events

extension OwnerSearch {
    package mutating func began(_ now: Instant, effects: inout [Effect]) {
        guard state == .notBegun else { return }
        askNext(from: 0, now, &effects)
    }

    package mutating func replied(
        _ node: NodeID, _ reply: Reply, _ now: Instant, effects: inout [Effect]
    ) {
        switch state {
        case .notBegun, .ended: return
        case .lookingBack(let asked, let until, var fetcher):
            guard asked.contains(node) || fetcher == node else { return }
            let others = asked.filter { $0 != node }
            if reply == .held {
                let rest = others + (fetcher.map { $0 == node ? [] : [$0] } ?? [])
                return take(node, cancelling: rest, &effects)
            }
            if reply == .fetching, fetcher != nil, fetcher != node {
                effects.append(.cancel(node))
            } else {
                fetcher = reply == .fetching ? node : fetcher == node ? nil : fetcher
            }
            lookBack(to: others, until: until, fetcher, now, &effects)
        case .awaiting(let fetcher, _):
            guard node == fetcher else { return }
            switch reply {
            case .held: take(node, cancelling: [], &effects)
            case .fetching: state = .awaiting(node, heardAt: now)
            default: end(.fetch, &effects)
            }
        case .asking(let owner, let heardAt, let probed):
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
        case .notBegun, .ended: return
        case .lookingBack(let asked, let until, let fetcher):
            guard asked.contains(node) || fetcher == node else { return }
            effects.append(.cancel(node))
            lookBack(
                to: asked.filter { $0 != node }, until: until, fetcher == node ? nil : fetcher,
                now, &effects)
        case .awaiting(let fetcher, _):
            guard node == fetcher else { return }
            effects.append(.cancel(node))
            end(.fetch, &effects)
        case .asking(let owner, let heardAt, let probed):
            if preference[owner].node == node {
                passOver(owner, probed, now, &effects)
            } else if let probed, preference[probed].node == node {
                effects.append(.cancel(node))
                state = .asking(owner: owner, heardAt: heardAt, probed: nil)
            }
        }
    }

    /// A peer asks this node for the same: it acts as the owner, and no longer waits for one that
    /// may be waiting for it.
    package mutating func becameOwner(_ now: Instant, effects: inout [Effect]) {
        guard case .asking(let owner, _, let probed) = state else { return }
        effects.append(.cancel(preference[owner].node))
        if let probed { effects.append(.cancel(preference[probed].node)) }
        own(now, &effects)
    }

    /// The same of a search that has not begun.
    package mutating func beganAsOwner(_ now: Instant, effects: inout [Effect]) {
        guard state == .notBegun else { return }
        own(now, &effects)
    }

    package mutating func ticked(_ now: Instant, effects: inout [Effect]) {
        guard let nextTick, now >= nextTick else { return }
        switch state {
        case .notBegun, .ended: return
        case .lookingBack(let asked, _, let fetcher):
            effects += asked.map { .cancel($0) }
            lookBack(to: [], until: now, fetcher, now, &effects)
        case .awaiting(let fetcher, _):
            effects.append(.cancel(fetcher))
            end(.fetch, &effects)
        case .asking(let owner, let heardAt, let probed):
            guard now - heardAt < Self.silenceMax else {
                return passOver(owner, probed, now, &effects)
            }
            isNextProbed = true
            guard let next = next(after: owner) else { return }
            effects.append(.ask(preference[next].node, .probe))
            state = .asking(owner: owner, heardAt: heardAt, probed: next)
        }
    }

    /// Nobody wants the answer any more.
    package mutating func cancelled(effects: inout [Effect]) {
        switch state {
        case .notBegun, .ended: break
        case .lookingBack(let asked, _, let fetcher):
            effects += (asked + (fetcher.map { [$0] } ?? [])).map { .cancel($0) }
        case .awaiting(let fetcher, _): effects.append(.cancel(fetcher))
        case .asking(let owner, _, let probed):
            effects += ([owner] + (probed.map { [$0] } ?? [])).map { .cancel(preference[$0].node) }
        }
        state = .ended
    }
}
