import Cluster
import Ground
import HTTPRules
import Origin
import Peering
import Platform
import Serving
import Store
import Telemetry
import Wire

/// Executor of a fetch's `Lookup` state machine: runs its effects and reports their results.
///
/// Confined to the event loop of its context.
final class LookupDriver {
    /// The fetch that is driven.
    let fetch: ActiveFetch
    /// The context on whose loop the fetch runs.
    unowned let context: EventLoopContext
    /// Name of the URL's primary entry on disk and on the ring; `nil` if none was required so far.
    private(set) var name: EntryName?
    /// The pending response of the client whose request causes the fetch; `nil` for another cause.
    let requester: PendingResponse?
    /// The handler of the peer query that causes the fetch, if a peer's does.
    weak var peerHandler: PeerRequestHandler?
    /// The source in use; `nil` before the first one and after the end.
    private var source: (any ResponseSource)?
    /// The request as relayed to peers; empty before they are determined.
    private(set) var relayedRequest: [UInt8] = []
    /// Whether a range request fetches the whole response or a part; `nil` for other requests.
    private var fetchScope: RangeRequestHistory.FetchScope?
    /// True once no further reader can join this fetch.
    private(set) var isClosedToReaders = false
    /// True after ``end()``: nothing more is received.
    private var isEnded = false

    /// Creates the driver of `run` on the loop of `context`.
    init(
        _ run: ActiveFetch, name: EntryName?, on context: EventLoopContext,
        for requester: PendingResponse? = nil
    ) {
        self.fetch = run
        self.name = name
        self.context = context
        self.requester = requester
    }

    /// Passes an event to the state machine, runs the resulting effects on sources, and schedules
    /// the next deadline.
    func handle(_ event: (inout Lookup, inout [LookupEffect]) -> Void) {
        perform(fetch.update { event(&$0.lookup, &$1) })
        context.fetches.scheduleDeadline(of: self, now: SystemClock.now())
    }

    /// Runs the effects that concern sources.
    private func perform(_ effects: [LookupEffect]) {
        for effect in effects {
            // An earlier effect may have ended the fetch.
            guard !isEnded else { return }
            switch effect {
            case .readDisk: readDisk()
            case .resolvePeers: resolvePeers()
            case .sendPeerQuery(let node, let question): peerSource()?.send(question, to: node)
            case .cancelPeerQuery(let node): peerSource()?.cancel(node)
            case .acceptPeerResponse(let node): peerSource()?.acceptResponse(from: node)
            case .fetchFromOrigin: fetchFromOrigin()
            case .resume(let skipsPeers): resume(skipsPeers: skipsPeers)
            case .reportMiss: fail(.notCached)
            case .wakeReaders, .updateFlow, .abort, .releasePrefix, .stopStoring: break
            }
        }
    }

    // MARK: Sources

    /// Starts the disk source, or reports a miss if there is no disk to read.
    private func readDisk() {
        guard let name, let disk = context.node.disk, let view = disk.view else {
            return handle { $0.diskMissed(effects: &$1) }
        }
        let reader = DiskSource(self, name: name, tier: disk, view: view)
        source = reader
        reader.search()
    }

    /// Determines the peers to query, and whether a range request fetches the whole response, and
    /// reports them to the state machine; limits how far a fetch continues without readers, unless
    /// it is in the background.
    private func resolvePeers() {
        if !siteRequest.isBackground { fetch.limitUnread() }
        fetchScope = context.fetchScope(of: fetch)
        let (peers, startsNothing) = (candidatePeers, fetchScope == .part)
        handle {
            $0.peersResolved(
                peers, onlyProbes: startsNothing, SystemClock.now(), effects: &$1)
        }
    }

    /// Peers to query; `nil` if the origin is contacted from this node without them.
    ///
    /// A node whose fence is closed trusts only the origin; so does a node that has yet to send an
    /// invalidation of the key to others. Also sets ``relayedRequest`` and ``name`` for the
    /// queries.
    private var candidatePeers: Lookup.Peers? {
        // An owner would reply to a request that restarts because its response is not shared only
        // that the origin must be contacted.
        let isAlone =
            fetch.options.isExclusive && !fetch.options.isResumption && !siteRequest.isImage
        guard siteRequest.isShared, !isAlone, !fetch.options.skipsPeers, let hub = context.node.hub,
            context.fence.isOpen(at: SystemClock.now()),
            !context.purges.mayBeStaleElsewhere(fetch.key),
            let relay = siteRequest.relayedBytes(through: context.node, for: fetch.client)
        else { return nil }
        self.relayedRequest = relay
        let name = name ?? EntryName(ofKey: fetch.key)
        self.name = name
        let view = hub.view
        return Lookup.Peers(
            me: view.own.member.id,
            preference: hub.ringUpdater.ring.owners(of: name.digest).map {
                .init($0, isReachable: view.isReachable($0))
            },
            leaving: Array(view.draining))
    }

    /// Returns the peer source, created on first use; `nil` if the node has no cluster.
    private func peerSource() -> PeerSource? {
        if let peers = source as? PeerSource { return peers }
        guard let hub = context.node.hub, let name else { return nil }
        let peers = PeerSource(self, name: name, hub: hub)
        source = peers
        return peers
    }

    private var siteRequest: SiteRequest { fetch.siteRequest }

    /// Starts the origin source; if the origin must not be contacted, serves the stale response if
    /// permitted, or fails.
    private func fetchFromOrigin() {
        if fetchScope == .part { fetch.limitToPart() }
        if let problem = originRefusal {
            if !siteRequest.cacheControl.isOnlyIfCached, let stale = fetch.staleEntry,
                serveStaleOnError(stale, status: nil)
            {
                return finish()
            }
            return fail(problem)
        }
        fetch.recordOriginFetchStart()
        context.node.fetches.readersChanged(fetch)
        let origin = OriginSource(
            self, fetch.snapshot.isPart ? siteRequest.partVariant : siteRequest.originVariant)
        source = origin
        origin.start()
    }

    /// The reason why the origin is not contacted; `nil` if the fetch was admitted, and then
    /// occupies a slot.
    private var originRefusal: Problem? {
        if siteRequest.cacheControl.isOnlyIfCached { return .notCached }
        let key = fetch.key
        let refused =
            if let origin = siteRequest.policy.origin {
                context.origin.circuitRefusal(ofSite: origin)
            } else {
                context.origin.circuitRefusal(ofKey: key.span)
            }
        if let refused { return .originFailed(refused) }
        switch context.node.fetches.admitOriginFetch(
            fetch, for: fetch.quotaHolders, now: SystemClock.now())
        {
        case nil: return nil
        case .capacity: return .overloaded(.fetches)
        case .quota: return .overloaded(.fetchShare)
        }
    }

    /// Serves a stored response in place of an origin's error, if permitted (RFC 5861 §4).
    ///
    /// - Parameters:
    ///   - stale: the stored response.
    ///   - status: status of the origin's response; `nil` if there was none.
    /// - Returns: false if the stored response must not be served.
    func serveStaleOnError(_ stale: MemoryEntry, status: UInt16?) -> Bool {
        guard siteRequest.isUsableOnError(stale.metadata, now: SystemClock.now()) else {
            return false
        }
        fetch.storedResponseUsed(
            stale, isShared: true, isStored: true, nominated: siteRequest.nominated(of: stale),
            staleFallback: .init(status: status))
        return true
    }

    /// Returns the state of the stored response for the same request at `now`, given the fence.
    func storedState(_ stale: MemoryEntry?, now: Instant) -> StorageDecision.StoredState {
        guard let stale else { return .nothing }
        return now < context.fence.effectiveFacts(stale.metadata, now: now).freshUntil
            ? .fresh : .stale
    }

    /// Starts or continues the resumption of a body that a peer broke off; reports the loss if
    /// there is nothing to resume.
    private func resume(skipsPeers: Bool) {
        if let resumption = source as? ResumptionSource { return resumption.begin(skipsPeers) }
        guard let peers = source as? PeerSource, let name, let begun = peers.partialResponse else {
            return handle { $0.lost(effects: &$1) }
        }
        let resumption = ResumptionSource(
            self, name: name, begun, receivedBytes: peers.receivedBytes)
        source = resumption
        resumption.begin(skipsPeers)
    }

    // MARK: Reports of sources

    /// Reports that the disk has no response that may be served without contacting the origin.
    func diskMissed() {
        handle { $0.diskMissed(effects: &$1) }
    }

    /// Ends the fetch with `problem`.
    ///
    /// `nominated` are the request fields on which the failure depends; readers whose requests
    /// differ in them start again.
    func fail(_ problem: Problem, nominated: FieldNames = FieldNames()) {
        fetch.failed(problem, nominated: nominated)
        finish()
    }

    /// Reports that the response of a peer does not suit this request.
    ///
    /// - Parameter fetchesPart: true if the origin must be asked only for the requested part.
    func peerResponseRejected(fetchesPart: Bool = false) {
        if fetchesPart { fetchScope = .part }
        handle { $0.peerResponseRejected(effects: &$1) }
    }

    /// Reports that the source has failed before the end of the response.
    ///
    /// - Parameter canBeResumed: true if another source may continue it.
    func lost(canBeResumed: Bool = false) {
        handle { $0.lost(canBeResumed: canBeResumed, effects: &$1) }
        if fetch.isFinished { finish() }
    }

    /// Closes the fetch to new readers, because the response is complete or has failed.
    func closeToReaders() {
        guard !isClosedToReaders else { return }
        isClosedToReaders = true
        context.node.fetches.remove(fetch)
    }

    /// Releases the source and the origin slot; nothing more is received.
    func end() {
        guard !isEnded else { return }
        isEnded = true
        fetch.update { state, _ in state.lookup.ended() }
        context.node.fetches.originFetchEnded(fetch)
        context.fetches.ended(self)
        source = nil
    }

    /// Closes the fetch to new readers and ends it.
    func finish() {
        closeToReaders()
        end()
    }

    /// Passes the head of an interim response to the client or peer whose request caused the fetch
    /// (RFC 9110 §15.2).
    func relay(interim head: [UInt8]) {
        requester?.relay(interim: head, for: fetch)
        peerHandler?.relay(interim: head, for: fetch)
    }

    // MARK: Events of the fetch, its readers and its loop

    /// Pauses or resumes the source as the readers require.
    func updateFlow() { source?.updateFlow() }

    /// Cancels the fetch and its source; readers that still wait start again.
    func cancel() {
        handle { $0.cancelled(effects: &$1) }
        source?.cancel()
        finish()
    }

    /// True if other requests wait for the origin in use.
    var isContended: Bool { source?.isContended ?? false }

    /// Records that a peer waits for the response, so that this fetch waits for no peer that could
    /// wait for it.
    func peerJoined() {
        handle { $0.peerJoined(SystemClock.now(), effects: &$1) }
        (source as? ResumptionSource)?.peerJoined()
    }

    /// Next deadline of the state machine; `nil` for none.
    var deadline: Instant? { isEnded ? nil : fetch.deadline }

    /// Processes a deadline that was reached.
    func deadlineReached(_ now: Instant) {
        if fetch.isProbingOwners { context.counters.add(.peerProbesTimedOut) }
        handle { $0.deadlineReached(now, effects: &$1) }
    }

    /// The origin source, which accepts the body of the causing request; `nil` for other sources.
    var uploadSource: OriginSource? { source as? OriginSource }
}

/// A source of the response of a fetch: the disk, peers, another fetch, or an origin.
///
/// Reports to its ``LookupDriver``. Confined to the event loop of its context.
protocol ResponseSource: AnyObject {
    /// Pauses or resumes as the fetch requires at the time of the call, because calls from two
    /// loops may arrive in either order.
    func updateFlow()
    /// Stops the source; the rest of the response is not required.
    func cancel()
    /// True if other requests wait for the origin in use.
    var isContended: Bool { get }
}

extension ResponseSource {
    var isContended: Bool { false }
}

/// A reader of an ``ActiveFetch``, on the event loop of its own context.
protocol FetchReader: AnyObject {
    /// Handles an event of the fetch that the reader waits for; the reader may have left since.
    func fetchAdvanced(by run: ActiveFetch)
}
