package import Ground
package import HTTPRules

/// A fetch: where the answer is looked for that memory does not have, one place after the other,
/// and who is given it.
///
///     begun ─▶ disk ─▶ owner ─▶ origin ─▶ over
///       └────────┴───────▲┴────────▲        ▲
///                        └─▶ resumption ────┘
///
/// Each place either brings the answer or says that it is *absent* there; then the next one is
/// asked. What owners bring may be *lost* on its way: the rest then comes from elsewhere, if it is
/// the same answer. While the body comes the step stays, and ``fill`` says how far it is.
///
/// The shell tells what happened and does what it is answered (``LookupEffect``): disk, peers and
/// origin report, and start nobody.
package struct Lookup: Sendable {
    /// Where the answer is looked for, or comes from.
    package enum Step: Hashable, Sendable {
        /// Nobody was asked.
        case notStarted
        /// The node's own disk.
        case disk
        /// Peers: the owners of the key, and those whom an owner asks.
        case peers
        /// The rest of what a peer has not given to its end, from other peers or from the origin.
        case resumption(attempt: Int)
        case origin
        /// Nobody is asked any more. Last.
        case finished
    }

    /// What the request that causes a fetch wants of it.
    package struct Options: Hashable, Sendable {
        /// Nobody else may wait for it.
        package var isExclusive = false
        /// A peer wants to know whether the answer is here: nobody else is asked.
        package var isProbe = false
        /// It brings the rest of what another fetch has begun.
        package var isResumption = false
        /// A peer has lost the answer once.
        package var skipsPeers = false
        /// A peer waits for it: see ``Lookup/isOwner``.
        package var isForPeer = false

        package init() {}
    }

    /// The nodes that may have the answer to one key.
    package struct Peers: Hashable, Sendable {
        /// This node.
        package var localNode: NodeID
        /// Those that prefer the key, in that order.
        package var preference: [OwnerSearch.Candidate]
        /// Nodes that own nothing any more and hand over what they hold.
        package var drainingNodes: [NodeID]

        package init(me: NodeID, preference: [OwnerSearch.Candidate], leaving: [NodeID]) {
            self.localNode = me
            self.preference = preference
            self.drainingNodes = leaving
        }
    }

    /// How many nodes an owner asks before it asks the origin.
    package static let ownerProbesMax = 3
    /// How often the rest of a body is looked for: with the help of peers, and without.
    package static let resumptionsMax = 2

    package private(set) var step = Step.notStarted
    /// How far the answer has come, and who waits for it.
    package var fetch: Fetch
    package let options: Options
    /// A peer waits for it, so that it may wait for no peer that might wait for this one.
    package private(set) var isOwner: Bool
    private var search: OwnerSearch?

    package init(_ wish: Options, _ fetch: Fetch) {
        self.options = wish
        self.fetch = fetch
        isOwner = wish.isForPeer
    }

    /// When ``deadlineReached(_:effects:)`` is to be told; nil if not at all.
    package var deadline: Instant? { search?.deadline }

    /// This node acts as the owner, and waits for what others say who may have the answer.
    package var isProbingOwners: Bool { search?.isProbing ?? false }

    /// The origin was asked, and the answer is not whole.
    package var isFetchingFromOrigin: Bool { step == .origin && !fetch.isFinished }
}

// MARK: - Where the answer is looked for

extension Lookup {
    /// Its request has come; `asksDisk` if the disk may have the answer.
    package mutating func started(readsDisk: Bool, effects: inout [LookupEffect]) {
        guard step == .notStarted else { return }
        guard readsDisk else { return continueBeyondDisk(&effects) }
        step = .disk
        effects.append(.readDisk)
    }

    /// The disk has nothing that may be given without asking.
    package mutating func diskMissed(effects: inout [LookupEffect]) {
        guard step == .disk else { return }
        continueBeyondDisk(&effects)
    }

    private mutating func continueBeyondDisk(_ effects: inout [LookupEffect]) {
        guard options.isProbe else { return effects.append(.resolvePeers) }
        step = .finished
        effects.append(.reportMiss)
    }

    /// These peers may have the answer; nil if the origin is asked from here.
    ///
    /// `startsNothing`: nobody is to fetch the whole for the part that is wanted; peers are asked
    /// whether they have it.
    package mutating func peersResolved(
        _ peers: Peers?, onlyProbes: Bool = false, _ now: Instant,
        effects: inout [LookupEffect]
    ) {
        guard step == .notStarted || step == .disk else { return }
        guard let peers, !options.skipsPeers,
            peers.preference.contains(where: { $0.node != peers.localNode })
        else { return fetchFromOrigin(&effects) }
        step = .peers
        let actsAsOwner = isOwner || onlyProbes
        search = OwnerSearch(
            me: peers.localNode, preference: peers.preference, lookback: Self.ownerProbesMax,
            leaving: Array(peers.drainingNodes.prefix(Self.ownerProbesMax)))
        advanceSearch(&effects) {
            if actsAsOwner {
                $0.startedAsOwner(now, effects: &$1)
            } else {
                $0.started(now, effects: &$1)
            }
        }
    }

    private mutating func fetchFromOrigin(_ effects: inout [LookupEffect]) {
        step = .origin
        search = nil
        effects.append(.fetchFromOrigin)
    }

    // MARK: Owners

    /// What a peer says first of the key, or next.
    package mutating func replied(
        _ node: NodeID, _ reply: OwnerSearch.Reply, _ now: Instant,
        effects: inout [LookupEffect]
    ) {
        advanceSearch(&effects) { $0.replied(node, reply, now, effects: &$1) }
    }

    /// The connection to a peer is gone that was asked, or it is suspected.
    package mutating func lost(_ node: NodeID, _ now: Instant, effects: inout [LookupEffect]) {
        advanceSearch(&effects) { $0.lost(node, now, effects: &$1) }
    }

    /// A peer waits for the answer from now on.
    package mutating func peerJoined(_ now: Instant, effects: inout [LookupEffect]) {
        isOwner = true
        advanceSearch(&effects) { $0.becameOwner(now, effects: &$1) }
    }

    package mutating func deadlineReached(_ now: Instant, effects: inout [LookupEffect]) {
        advanceSearch(&effects) { $0.ticked(now, effects: &$1) }
    }

    /// What a peer has answered is no answer to this request.
    package mutating func peerResponseRejected(effects: inout [LookupEffect]) {
        guard step == .peers else { return }
        fetchFromOrigin(&effects)
    }

    private mutating func advanceSearch(
        _ effects: inout [LookupEffect],
        _ event: (inout OwnerSearch, inout [OwnerSearch.Effect]) -> Void
    ) {
        guard var search else { return }
        var wanted: [OwnerSearch.Effect] = []
        event(&search, &wanted)
        self.search = search.isFinished ? nil : search
        for effect in wanted {
            switch effect {
            case .sendQuery(let node, let question): effects.append(.sendPeerQuery(node, question))
            case .cancelQuery(let node): effects.append(.cancelPeerQuery(node))
            case .acceptResponse(let node): effects.append(.acceptPeerResponse(node))
            case .fetchFromOrigin: fetchFromOrigin(&effects)
            }
        }
    }

    // MARK: The end

    /// What was on its way will not come from where it came; `canBeResumed` if another could go on
    /// with the same answer.
    package mutating func lost(canBeResumed: Bool = false, effects: inout [LookupEffect]) {
        guard !fetch.isFinished else { return }
        switch step {
        case .peers where canBeResumed && !options.isResumption: resume(1, &effects)
        case .resumption(let attempt) where canBeResumed && attempt < Self.resumptionsMax:
            resume(attempt + 1, &effects)
        default:
            fetch.lost(effects: &effects)
        }
    }

    private mutating func resume(_ attempt: Int, _ effects: inout [LookupEffect]) {
        step = .resumption(attempt: attempt)
        effects.append(.resume(skipsPeers: attempt == Self.resumptionsMax))
    }

    /// Nobody wants the rest of the answer: whoever has joined since it was given up begins anew.
    package mutating func cancelled(effects: inout [LookupEffect]) {
        advanceSearch(&effects) { $0.cancelled(effects: &$1) }
        fetch.lost(effects: &effects)
    }

    /// Nobody is asked any more.
    package mutating func ended() {
        step = .finished
        search = nil
    }
}

// MARK: - Who may wait for it

extension Lookup {
    /// A request that might be served from this fetch.
    package struct Candidate: Sendable {
        /// What the origin is asked with; nil if no answer depends on it.
        package var requestFields: RequestFields?
        /// It says itself what may be given to it (RFC 9111 §5.2.1).
        package var hasCacheControl = false
        /// It is given nothing whose request began before it came.
        package var requiresValidation = false

        package init(
            _ lines: RequestFields?, hasControl: Bool = false, wantsValidation: Bool = false
        ) {
            self.requestFields = lines
            self.hasCacheControl = hasControl
            self.requiresValidation = wantsValidation
        }
    }

    /// Lets a request wait for this fetch, the first of which causes it; nil if it cannot be
    /// served from it.
    package mutating func join(_ candidate: Candidate) -> Fetch.ReaderID? {
        let isFirst = fetch.totalReaderCount == 0
        guard isFirst || !options.isExclusive, fetch.accepts(candidate.requestFields)
        else { return nil }
        // What the disk has was judged for the one who caused the fetch.
        if step == .disk, candidate.hasCacheControl, !isFirst { return nil }
        if fetch.phase != .awaitingHead, candidate.requiresValidation { return nil }
        return fetch.readerJoined(candidate.requestFields)
    }
}

/// What the shell is to do after an event, in the order given.
package enum LookupEffect: Hashable, Sendable {
    // Where the answer is looked for, on the loop of the fetch.

    /// The disk is to be read; it says ``Lookup/absent(_:effects:)`` or brings the answer.
    case readDisk
    /// ``Lookup/wentBeyond(_:startsNothing:_:effects:)`` is to be told which peers there are.
    case resolvePeers
    case sendPeerQuery(NodeID, OwnerSearch.QueryKind)
    /// What the peer still says is not wanted.
    case cancelPeerQuery(NodeID)
    /// What the peer has answered is the answer.
    case acceptPeerResponse(NodeID)
    case fetchFromOrigin
    /// The rest of the body is to be brought by a fetch of its own, which asks peers or not.
    case resume(skipsPeers: Bool)
    /// The answer is not here, and nobody else is asked.
    case reportMiss

    // What comes of it.

    /// Readers that were told to wait are to ask again.
    case wakeReaders
    /// What brings the body goes on or not, as ``Fetch/isPaused`` says by the time this is done:
    /// two of them may be done in either order.
    case updateFlow
    /// Break the fetch off: nobody wants what it brings.
    case abort
    /// The bytes below ``Fetch/heldFrom`` are needed no more.
    case releasePrefix
    /// The body is not kept after all; give back what was reserved for it.
    case stopStoring
}

/// What a reader does next.
package enum ReaderStep: Hashable, Sendable {
    /// Nothing now; asks again when woken.
    case wait
    /// Takes these bytes of the body, then says ``Fetch/advanced(_:by:effects:)``.
    case read(from: UInt64, bytes: Int)
    /// The body is whole and taken.
    case finish
    /// Begins anew as if it had just arrived. `alone`: the answer may not be shared, so the next
    /// one hardly will be either, and waiting for it would serve the waiters one after the other.
    case restart(isExclusive: Bool)
    /// Its answer cannot be completed; the fetch itself may go on.
    case abort
    /// The fetch failed.
    case fail
}
