package import Ground
package import HTTPRules

/// A search for a response that memory does not have, one source after the other, with its readers.
///
///     notStarted ─▶ disk ─▶ peers ─▶ origin ─▶ finished
///       └─────────────┴───────▲┴────────▲        ▲
///                             └─▶ resumption ────┘
///
/// Each source either delivers the response or reports that it is absent; then the next source is
/// tried. A response from a peer may be lost in transit. The rest of its body then comes from
/// elsewhere, if the representation is the same. The step does not change while the body arrives;
/// ``fetch`` holds the progress.
///
/// The shell reports events and performs the returned ``LookupEffect``s. The disk, peers and origin
/// only report; they do not start each other.
package struct Lookup: Sendable {
    /// The source that is being tried, or that delivers the response.
    package enum Step: Hashable, Sendable {
        /// No source has been tried.
        case notStarted
        /// The node's own disk.
        case disk
        /// Peers: the owners of the key, and the nodes that an owner queries.
        case peers
        /// The rest of a body that a peer has not delivered to its end, from other peers or from
        /// the origin.
        case resumption(attempt: Int)
        /// The origin.
        case origin
        /// The search is over. Final.
        case finished
    }

    /// The properties of the request that starts a fetch.
    package struct Options: Hashable, Sendable {
        /// True if no other request may wait for this fetch.
        package var isExclusive = false
        /// True if a peer only asks whether the response is stored here: no further source is
        /// tried.
        package var isProbe = false
        /// True if it fetches the rest of a body that another fetch has begun.
        package var isResumption = false
        /// True if peers are not asked, because a peer has already lost the response once.
        package var skipsPeers = false
        /// True if a peer waits for it; see ``Lookup/isOwner``.
        package var isForPeer = false

        /// Creates options of a client's ordinary request.
        package init() {}
    }

    /// The nodes that may hold the response to one key.
    package struct Peers: Hashable, Sendable {
        /// This node.
        package var localNode: NodeID
        /// The nodes that prefer the key, in order of preference.
        package var preference: [OwnerSearch.Candidate]
        /// Nodes that no longer own keys and hand off what they hold.
        package var drainingNodes: [NodeID]

        /// Creates a set of peers; `me` is this node, and `leaving` are the draining nodes.
        package init(me: NodeID, preference: [OwnerSearch.Candidate], leaving: [NodeID]) {
            self.localNode = me
            self.preference = preference
            self.drainingNodes = leaving
        }
    }

    /// Maximum number of owners, and of draining nodes, that an owner probes before it asks the
    /// origin.
    package static let ownerProbesMax = 3
    /// Maximum number of attempts to resume a body: the first with the help of peers, the last
    /// without.
    package static let resumptionsMax = 2

    /// The current step.
    package private(set) var step = Step.notStarted
    /// The progress of the response, and its readers.
    package var fetch: Fetch
    /// The properties of the request that started it.
    package let options: Options
    /// True if a peer waits for this response, so that it must not wait for a peer that may wait
    /// for it.
    package private(set) var isOwner: Bool
    /// The search among peers; `nil` unless it is in progress.
    private var search: OwnerSearch?

    /// Creates a search for `fetch` that has not started.
    package init(_ options: Options, _ fetch: Fetch) {
        self.options = options
        self.fetch = fetch
        isOwner = options.isForPeer
    }

    /// When to call ``deadlineReached(_:effects:)``; `nil` for never.
    package var deadline: Instant? { search?.deadline }

    /// True while this node acts as the owner and waits for the replies to its probes.
    package var isProbingOwners: Bool { search?.isProbing ?? false }

    /// True if the origin was asked and its response is incomplete.
    package var isFetchingFromOrigin: Bool { step == .origin && !fetch.isFinished }
}

// MARK: - Sources

extension Lookup {
    /// Starts the search; `readsDisk` is true if the disk may have the response.
    package mutating func started(readsDisk: Bool, effects: inout [LookupEffect]) {
        guard step == .notStarted else { return }
        guard readsDisk else { return continueBeyondDisk(&effects) }
        step = .disk
        effects.append(.readDisk)
    }

    /// Records that the disk has nothing that may be served without revalidation.
    package mutating func diskMissed(effects: inout [LookupEffect]) {
        guard step == .disk else { return }
        continueBeyondDisk(&effects)
    }

    /// Determines the peers, or reports to a probe that the response is not stored.
    private mutating func continueBeyondDisk(_ effects: inout [LookupEffect]) {
        guard options.isProbe else { return effects.append(.resolvePeers) }
        step = .finished
        effects.append(.reportMiss)
    }

    /// Records the peers that may have the response.
    ///
    /// - Parameters:
    ///   - peers: `nil` if the origin is asked directly.
    ///   - onlyProbes: true if no node is to fetch the whole body for the requested range; peers
    ///     are then only probed.
    ///   - now: the current instant.
    ///   - effects: receives the effects to perform.
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

    /// Ends the search among peers, and asks the origin.
    private mutating func fetchFromOrigin(_ effects: inout [LookupEffect]) {
        step = .origin
        search = nil
        effects.append(.fetchFromOrigin)
    }

    // MARK: Owners

    /// Records a reply of a peer, the first or a later one; ignored once the search among peers is
    /// over.
    package mutating func replied(
        _ node: NodeID, _ reply: OwnerSearch.Reply, _ now: Instant,
        effects: inout [LookupEffect]
    ) {
        advanceSearch(&effects) { $0.replied(node, reply, now, effects: &$1) }
    }

    /// Records that the connection to a queried peer was lost, or that the peer is suspected.
    package mutating func lost(_ node: NodeID, _ now: Instant, effects: inout [LookupEffect]) {
        advanceSearch(&effects) { $0.lost(node, now, effects: &$1) }
    }

    /// Records that a peer waits for this response from now on: this node acts as the owner, and
    /// waits for no other owner.
    package mutating func peerJoined(_ now: Instant, effects: inout [LookupEffect]) {
        isOwner = true
        advanceSearch(&effects) { $0.becameOwner(now, effects: &$1) }
    }

    /// Applies the timeouts of the owner search that are due at `now`.
    package mutating func deadlineReached(_ now: Instant, effects: inout [LookupEffect]) {
        advanceSearch(&effects) { $0.ticked(now, effects: &$1) }
    }

    /// Records that a peer's response does not match this request; the origin is asked instead.
    package mutating func peerResponseRejected(effects: inout [LookupEffect]) {
        guard step == .peers else { return }
        fetchFromOrigin(&effects)
    }

    /// Passes an event to the search among peers, if there is one, and translates its effects.
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
            case .sendQuery(let node, let kind): effects.append(.sendPeerQuery(node, kind))
            case .cancelQuery(let node): effects.append(.cancelPeerQuery(node))
            case .acceptResponse(let node): effects.append(.acceptPeerResponse(node))
            case .fetchFromOrigin: fetchFromOrigin(&effects)
            }
        }
    }

    // MARK: End of the search

    /// Records that the source will not deliver the rest: it comes from another source, or all
    /// readers restart.
    ///
    /// `canBeResumed` is true if another source may continue the same representation; only what a
    /// peer has begun is continued, and only a limited number of times.
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

    /// Lets a new fetch deliver the rest of the body; the last attempt skips the peers.
    private mutating func resume(_ attempt: Int, _ effects: inout [LookupEffect]) {
        step = .resumption(attempt: attempt)
        effects.append(.resume(skipsPeers: attempt == Self.resumptionsMax))
    }

    /// Ends the search because no reader wants the rest; requests that have joined since then
    /// restart.
    package mutating func cancelled(effects: inout [LookupEffect]) {
        advanceSearch(&effects) { $0.cancelled(effects: &$1) }
        fetch.lost(effects: &effects)
    }

    /// Records that the search is over; queries in progress are not cancelled.
    package mutating func ended() {
        step = .finished
        search = nil
    }
}

// MARK: - Readers

extension Lookup {
    /// A request that might be served from this fetch.
    package struct Candidate: Sendable {
        /// The fields it would send to the origin; `nil` if responses do not depend on any.
        package var requestFields: RequestFields?
        /// True if the request has cache directives of its own (RFC 9111 §5.2.1).
        package var hasCacheControl = false
        /// True if only a response whose request starts after this one arrived may be served.
        package var requiresValidation = false

        /// Creates a candidate from its parts; `lines` are the ``requestFields``.
        package init(
            _ lines: RequestFields?, hasControl: Bool = false, wantsValidation: Bool = false
        ) {
            self.requestFields = lines
            self.hasCacheControl = hasControl
            self.requiresValidation = wantsValidation
        }
    }

    /// Adds a request as a reader; the first to join is the one that caused the fetch.
    ///
    /// - Returns: `nil` if the request cannot be served from this fetch.
    package mutating func join(_ candidate: Candidate) -> Fetch.ReaderID? {
        let isFirst = fetch.totalReaderCount == 0
        guard isFirst || !options.isExclusive, fetch.accepts(candidate.requestFields)
        else { return nil }
        // The disk entry was judged by the cache directives of the request that caused the fetch.
        if step == .disk, candidate.hasCacheControl, !isFirst { return nil }
        if fetch.phase != .awaitingHead, candidate.requiresValidation { return nil }
        return fetch.readerJoined(candidate.requestFields)
    }
}

/// The actions for the shell after an event, in this order.
package enum LookupEffect: Hashable, Sendable {
    // Effects on the search, performed on the event loop of the fetch.

    /// Read the disk; it reports ``Lookup/diskMissed(effects:)`` or delivers the response.
    case readDisk
    /// Determine the peers and report them with ``Lookup/peersResolved(_:onlyProbes:_:effects:)``.
    case resolvePeers
    /// Send a query to the peer.
    case sendPeerQuery(NodeID, OwnerSearch.QueryKind)
    /// Cancel the query to the peer; its further replies are ignored.
    case cancelPeerQuery(NodeID)
    /// Deliver the peer's response.
    case acceptPeerResponse(NodeID)
    /// Send a request to the origin.
    case fetchFromOrigin
    /// Fetch the rest of the body with a new fetch, which asks peers unless `skipsPeers`.
    case resume(skipsPeers: Bool)
    /// Report that the response is not stored here; no other source is tried.
    case reportMiss

    // Effects on the body and its readers.

    /// Wake the readers that wait; they call ``Fetch/nextStep(for:limit:)`` again.
    case wakeReaders
    /// Pause or resume the source according to ``Fetch/isPaused`` at the time this effect is
    /// performed, so that the order of two of them does not matter.
    case updateFlow
    /// Abort the fetch: no reader wants the response.
    case abort
    /// Release the body bytes below ``Fetch/retainedOffset``.
    case releasePrefix
    /// Stop keeping the body and release the memory reserved for it.
    case stopStoring
}

/// The next step of a reader.
package enum ReaderStep: Hashable, Sendable {
    /// Wait, and ask again when woken.
    case wait
    /// Read these bytes of the body, then report ``Fetch/readerAdvanced(_:by:effects:)``.
    case read(from: UInt64, bytes: Int)
    /// End: the body is complete and has been read.
    case finish
    /// Start again as a new request. If `isExclusive`, the response was not shareable and the next
    /// one probably is not either; waiting for it would serve the waiting requests one after the
    /// other.
    case restart(isExclusive: Bool)
    /// Abort this reader, whose response cannot be completed; the fetch itself may continue.
    case abort
    /// Report an error: the fetch failed.
    case fail
}
