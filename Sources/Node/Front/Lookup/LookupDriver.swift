import Cluster
import Ground
import HTTPRules
import Origin
import Serving
import Store
import Telemetry
import Wire

/// Does what the ``Lookup`` of a fetch says, and tells it what came of that.
///
/// Confined to the loop of its hall.
final class LookupDriver {
    let fetch: ActiveFetch
    unowned let context: EventLoopContext
    /// What the answer is called on disk and on the ring, variants apart; nil if it has no name
    /// there.
    private(set) var name: EntryName?
    /// The door whose request causes the fetch; not weak, or each of its later answers would cost
    /// more.
    let handler: RequestHandler?
    /// A peer's question that causes it, in the stead of a door's request.
    weak var peerHandler: PeerRequestHandler?
    private var source: (any ResponseSource)?
    /// What peers are told of the request.
    private(set) var relayedRequest: [UInt8] = []
    /// What is fetched where a part is wanted; nil if none is.
    private var fetchScope: RangeRequestHistory.FetchScope?
    /// Nobody joins this fetch any more.
    private(set) var isClosedToReaders = false
    private var isEnded = false

    init(
        _ run: ActiveFetch, name: EntryName?, on context: EventLoopContext,
        for handler: RequestHandler?
    ) {
        self.fetch = run
        self.name = name
        self.context = context
        self.handler = handler
    }

    /// Tells the machine, and does what it wants.
    func handle(_ event: (inout Lookup, inout [LookupEffect]) -> Void) {
        perform(fetch.update { event(&$0.lookup, &$1) })
        context.scheduleDeadline(self, now: SystemClock.now())
    }

    private func perform(_ effects: [LookupEffect]) {
        for effect in effects {
            // What was done for the one before may have ended it.
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

    // MARK: Places

    private func readDisk() {
        guard let name, let disk = context.node.disk, let view = disk.view else {
            return handle { $0.diskMissed(effects: &$1) }
        }
        let reader = DiskSource(self, name: name, tier: disk, view: view)
        source = reader
        reader.search()
    }

    private func resolvePeers() {
        if !siteRequest.isBackground { fetch.limitUnread() }
        fetchScope = context.fetchScope(of: fetch)
        let (peers, startsNothing) = (candidatePeers, fetchScope == .part)
        handle {
            $0.peersResolved(
                peers, onlyProbes: startsNothing, SystemClock.now(), effects: &$1)
        }
    }

    /// Nil if the origin is asked from here.
    ///
    /// A node that may lack a purge takes nobody's word but the origin's; nor does one that has not
    /// yet told the others of a change.
    private var candidatePeers: Lookup.Peers? {
        // To a request that begins anew because answers are not shared an owner says no more than
        // that the origin is to be asked.
        let isAlone =
            fetch.options.isExclusive && !fetch.options.isResumption && !siteRequest.isImage
        guard siteRequest.isShared, !isAlone, !fetch.options.skipsPeers, let hub = context.node.hub,
            context.fence.isOpen(at: SystemClock.now()),
            !context.node.mayBeStaleElsewhere(fetch.key),
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

    /// Those that are asked, from the first question on; nil if the node has none.
    private func peerSource() -> PeerSource? {
        if let peers = source as? PeerSource { return peers }
        guard let hub = context.node.hub, let name else { return nil }
        let peers = PeerSource(self, name: name, hub: hub)
        source = peers
        return peers
    }

    private var siteRequest: SiteRequest { fetch.siteRequest }

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

    /// Why the origin is not even asked; nil if it is, which then counts as a fetch.
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

    /// Gives what is stored in the stead of an answer of the origin's of this status, or of none,
    /// if it may be given (RFC 5861 §4).
    func serveStaleOnError(_ stale: MemoryEntry, status: UInt16?) -> Bool {
        guard siteRequest.isUsableOnError(stale.metadata, now: SystemClock.now()) else {
            return false
        }
        fetch.storedResponseUsed(
            stale, isShared: true, isStored: true, nominated: siteRequest.nominated(of: stale),
            staleFallback: .init(status: status))
        return true
    }

    /// What was stored before for the same request, as it counts at `now`.
    func storedState(_ stale: MemoryEntry?, now: Instant) -> StorageDecision.StoredState {
        guard let stale else { return .nothing }
        return now < context.fence.effectiveFacts(stale.metadata, now: now).freshUntil
            ? .fresh : .stale
    }

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

    // MARK: What providers report

    /// The place has nothing that may be given without asking.
    func diskMissed() {
        handle { $0.diskMissed(effects: &$1) }
    }

    /// The readers get `problem`, and nothing more comes.
    func fail(_ problem: Problem, nominated: FieldNames = FieldNames()) {
        fetch.failed(problem, nominated: nominated)
        finish()
    }

    /// What a peer has said is no answer to this request; `asPart` if the origin is to be asked for
    /// the part that is wanted.
    func peerResponseRejected(fetchesPart: Bool = false) {
        if fetchesPart { fetchScope = .part }
        handle { $0.peerResponseRejected(effects: &$1) }
    }

    /// What there was to be had of the answer will not come to its end from here.
    func lost(canBeResumed: Bool = false) {
        handle { $0.lost(canBeResumed: canBeResumed, effects: &$1) }
        if fetch.isFinished { finish() }
    }

    /// The answer is whole, or there will be none: from now on nobody joins this fetch.
    func closeToReaders() {
        guard !isClosedToReaders else { return }
        isClosedToReaders = true
        context.node.fetches.remove(fetch)
    }

    /// Nothing more comes from where it came.
    func end() {
        guard !isEnded else { return }
        isEnded = true
        fetch.update { state, _ in state.lookup.ended() }
        context.node.fetches.originFetchEnded(fetch)
        context.fetchEnded(self)
        source = nil
    }

    func finish() {
        closeToReaders()
        end()
    }

    /// Passes the head of an interim answer on to who causes the fetch (RFC 9110 §15.2).
    func relay(interim head: [UInt8]) {
        handler?.relay(interim: head, for: fetch)
        peerHandler?.relay(interim: head, for: fetch)
    }

    // MARK: What the run, its readers and its loop say

    func updateFlow() { source?.updateFlow() }

    func cancel() {
        handle { $0.cancelled(effects: &$1) }
        source?.cancel()
        finish()
    }

    var isContended: Bool { source?.isContended ?? false }

    /// Another node has asked this one to bring the answer: it waits for nobody who might wait for
    /// it.
    func peerJoined() {
        handle { $0.peerJoined(SystemClock.now(), effects: &$1) }
        (source as? ResumptionSource)?.peerJoined()
    }

    var deadline: Instant? { isEnded ? nil : fetch.deadline }

    func deadlineReached(_ now: Instant) {
        if fetch.isProbingOwners { context.counters.add(.peerProbesTimedOut) }
        handle { $0.deadlineReached(now, effects: &$1) }
    }

    /// What takes the body of the request that causes the fetch.
    var uploadSource: OriginSource? { source as? OriginSource }
}

/// What brings the answer of a fetch: the disk, peers, another fetch, or an origin.
///
/// It reports to its ``LookupDriver`` and starts nobody. Confined to the loop of its hall.
protocol ResponseSource: AnyObject {
    /// Goes on or not, as the run says now: what two loops have said a moment ago may come in
    /// either order.
    func updateFlow()
    /// Nobody wants the rest of the answer.
    func cancel()
    /// Others wait for the origin that it asks.
    var isContended: Bool { get }
}

extension ResponseSource {
    var isContended: Bool { false }
}

/// Who takes what a `ActiveFetch` brings, on the loop of its own hall.
protocol FetchReader: AnyObject {
    /// The fetch that it waits for has something for it; it may have gone.
    func fetchAdvanced(by run: ActiveFetch)
}
