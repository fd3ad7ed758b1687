import Cluster
import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// The peers' side of a `ActiveFetch`: puts the questions that the lookup wants put, and hands on
/// what is taken.
///
/// Confined to its loop.
final class PeerSource: ResponseSource, PeerRequestDelegate {
    let driver: LookupDriver
    let fetch: ActiveFetch
    unowned let context: EventLoopContext
    let hub: PeerHub
    /// What the answer to the URL is called, variants apart.
    let name: EntryName
    var siteRequest: SiteRequest { fetch.siteRequest }
    private var requests: [PeerRequest] = []
    /// What a peer has said last that may be taken, which is taken at once or never.
    private var pendingReply: (node: NodeID, what: PendingReply)?
    /// What gives the answer.
    var peerResponse: PeerResponse?
    /// Where it stands here, if that is not the key, and the index that says so.
    var variant: (place: EntryKey, index: VariantIndex)?
    /// How often it was wanted here of late.
    let frequency: UInt8
    /// Interim heads that peers have passed on.
    private var interimTotals = (count: 0, bytes: 0)

    private enum PendingReply {
        case entry(PeerResponse)
        /// The origin's answer to it was an error of this status.
        case originError(UInt16)
    }

    /// An answer that is being given by a peer.
    struct PeerResponse {
        let request: PeerRequest
        var receivedEntry: ReceivedEntry
        let head: RenderedHead
        /// What is stored here is what the peer holds; no body follows.
        let isNotModified: Bool
        let receivedAt: Instant
        var receivedBytes: UInt64 = 0
        /// Handed on, and not yet said to be out of the way.
        var unacknowledgedBytes = 0

        var entry: PeerEntry { receivedEntry.entry }
        /// All of the body has come with the head, and nothing behind it.
        var isWhole: Bool { receivedEntry.end?.trailers.isEmpty == true && entry.facts.size != nil }
        var metadata: EntryMetadata {
            entry.facts.entryFacts(at: receivedAt, requestedAt: request.createdAt)
        }
    }

    init(_ driver: LookupDriver, name: EntryName, hub: PeerHub) {
        self.driver = driver
        fetch = driver.fetch
        context = driver.context
        self.name = name
        self.hub = hub
        frequency = context.node.recordUse(fetch.hash)
    }

    /// What others keep stays in memory, too, if it is wanted so often, also where others have to
    /// go for it.
    static let popularFrequencyMin: UInt8 = 2

    /// What the readers were told of the answer that is taken.
    var partialResponse: ResumptionSource.PartialResponse? {
        peerResponse.map {
            ResumptionSource.PartialResponse(
                metadata: $0.metadata, head: $0.head, sizeBytes: $0.entry.facts.size)
        }
    }

    /// Of the body of that answer.
    var receivedBytes: UInt64 { peerResponse?.receivedBytes ?? 0 }

    // MARK: What the run asks for

    func updateFlow() {
        guard let peerResponse, !fetch.isPaused, peerResponse.unacknowledgedBytes > 0 else {
            return
        }
        self.peerResponse?.unacknowledgedBytes = 0
        peerResponse.request.connection.bytesConsumed(
            peerResponse.unacknowledgedBytes, of: peerResponse.request)
    }

    func cancel() {
        for ask in requests { ask.cancel() }
        peerResponse?.request.cancel()
    }

    /// What the peer still says is not wanted.
    func cancel(_ node: NodeID) {
        removeRequest(node)?.cancel()
    }

    /// Nothing more is heard of what a peer was asked.
    @discardableResult
    private func removeRequest(_ node: NodeID) -> PeerRequest? {
        requests.firstIndex { $0.node == node }.map { requests.remove(at: $0) }
    }

    // MARK: What peers say

    func eventReceived(_ event: PeerRequest.Event, for ask: PeerRequest) {
        switch event {
        case .replyReceived(let response): replyReceived(response, ask)
        case .entryReceived(let response):
            let reply = evaluate(response, of: ask, isConfirmation: false)
            driver.handle { $0.replied(ask.node, reply, SystemClock.now(), effects: &$1) }
        case .dataReceived(let bytes): if peerResponse?.request === ask { bodyReceived(bytes) }
        case .bodyEnded(let end): if peerResponse?.request === ask { bodyEnded(end) }
        case .notSent:
            removeRequest(ask.node)
            driver.handle { $0.replied(ask.node, .declined, SystemClock.now(), effects: &$1) }
        case .failed:
            removeRequest(ask.node)
            if peerResponse?.request === ask { return transferLost() }
            driver.handle { $0.lost(ask.node, SystemClock.now(), effects: &$1) }
        }
    }

    private func replyReceived(_ response: PeerReply, _ ask: PeerRequest) {
        let node = ask.node
        var reply = OwnerSearch.Reply(response)
        switch response {
        case .notModified(let entry):
            // It may confirm what it was not asked about.
            reply =
                fetch.staleEntry == nil
                ? .declined
                : evaluate(ReceivedEntry(entry: entry), of: ask, isConfirmation: true)
        case .originFailed(let failure) where failure.status >= 400 && ask.query.kind == .get:
            pendingReply = (node, .originError(failure.status))
            // Of a site the answer is this client's to have, and the owner has not kept it.
            reply = siteRequest.isImage ? .originErrorResponse : .declined
        case .interim(let head):
            relay(interim: head, of: ask)
        case .declined(.otherPolicy):
            hub.siteSettingsDiffer(from: node, on: siteRequest.policy.name)
        default: break
        }
        if response.isFinal { removeRequest(node) }
        driver.handle { $0.replied(node, reply, SystemClock.now(), effects: &$1) }
    }

    /// Passes on what may be an interim head, within the limits of an origin's.
    private func relay(interim head: [UInt8], of ask: PeerRequest) {
        let limits = context.node.origins.settings
        interimTotals = (interimTotals.count + 1, interimTotals.bytes + head.count)
        // Of many only those of the one who will give the answer.
        guard ask.query.kind == .get, interimTotals.count <= limits.interimResponsesMax,
            interimTotals.bytes <= limits.headBytesMax, InterimResponseHead.isWellFormed(head)
        else { return }
        driver.relay(interim: head)
    }

    /// Hears what a peer would give; if its head is none, that peer has nothing.
    private func evaluate(
        _ response: ReceivedEntry, of ask: PeerRequest, isConfirmation: Bool
    ) -> OwnerSearch.Reply {
        do throws(StoredHeadFault) {
            let head = try RenderedHead(response.entry)
            pendingReply = (
                ask.node,
                .entry(
                    PeerResponse(
                        request: ask, receivedEntry: response, head: head,
                        isNotModified: isConfirmation,
                        receivedAt: SystemClock.now()))
            )
            return .found
        } catch {
            hub.replyRejected(ask.node, error)
            cancel(ask.node)
            return .declined
        }
    }

    func send(_ question: OwnerSearch.QueryKind, to node: NodeID) {
        guard let connection = hub.connection(to: node) else {
            // It has just gone; the search hears of it once this step is over.
            return context.loop.assumeIsolated().execute { [weak driver] in
                driver?.handle { $0.lost(node, SystemClock.now(), effects: &$1) }
            }
        }
        let entityTag = fetch.staleEntry.map { RenderedHead($0).slice($0.metadata.entityTag) } ?? []
        var told = PeerQuery(
            question == .get ? .get : .probe, name: name, key: fetch.key,
            negotiation: siteRequest.negotiation,
            entityTag: entityTag.count > PeerProtocol.entityTagBytesMax ? [] : entityTag,
            request: driver.relayedRequest)
        told.trace = PeerQuery.RequestTrace(fetch.correlation, span: .randomSpanID())
        let ask = PeerRequest(node, told, on: connection, for: self, of: context)
        requests.append(ask)
        context.counters.add(question == .get ? .peerGetsSent : .peerProbesSent)
        connection.send(ask)
    }

    // MARK: The answer

    /// What this peer has said is the answer.
    func acceptResponse(from node: NodeID) {
        guard let said = pendingReply.take(), said.node == node else {
            return driver.peerResponseRejected()
        }
        switch said.what {
        case .originError(let status): originErrorReceived(status)
        case .entry(let taken): accept(taken)
        }
    }

    private func accept(_ taken: PeerResponse) {
        self.peerResponse = taken
        if taken.entry.terms.restrictions.contains(.isStaleIfError), !acceptsStaleFallback(taken) {
            return
        }
        if taken.isNotModified { return freshenStored(taken) }
        let (entry, head, length) = (taken.entry, taken.head, taken.entry.facts.size)
        let facts = taken.metadata
        let limits = entry.terms.restrictions
        // The owner has nothing that might stand in, or it would have given that.
        if StatusRules.isFailure(entry.status), let stale = fetch.staleEntry,
            driver.serveStaleOnError(stale, status: entry.status)
        {
            if siteRequest.isBackground {
                context.pauseBackground(siteRequest, now: SystemClock.now())
            }
            taken.request.cancel()
            return driver.finish()
        }
        if shouldFetchPart(entry) {
            context.recordRepresentation(.unstorable, by: fetch)
            taken.request.cancel()
            return driver.peerResponseRejected(fetchesPart: true)
        }
        let nominated = siteRequest.nominated(head: head.bytes)
        let isStored = !limits.contains(.isNoStore) && resolveEntryKey(nominated)
        if !limits.contains(.isStaleIfError) {
            removeSuperseded(by: entry.status, isStored: isStored)
        }
        let isKept = isStored && reserveMemory(length, head)
        guard isKept || fetch.openWindow() else {
            taken.request.cancel()
            return driver.fail(.overloaded(.memory))
        }
        context.counters.add(.peerResponsesUsed)
        if limits.contains(.isHitForMiss), !siteRequest.isImage {
            context.node.recordHitForMiss(siteRequest, now: SystemClock.now())
        }
        if taken.isWhole, isKept, limits.isEmpty, completeWithEntry(taken, nominated) { return }
        fetch.responseHeadReceived(
            FetchedResponse(
                metadata: facts, head: head, sizeBytes: length, isKept: isKept, tags: entry.tags,
                isFromPeer: true),
            isShared: !limits.contains(.isPrivate), isStored: isStored,
            nominated: nominated, isHitForMiss: limits.contains(.isHitForMiss),
            isRequesterSpecific: limits.contains(.hasPrivateFields),
            staleFallback: limits.contains(.isStaleIfError)
                ? .init(status: entry.terms.originErrorStatus) : nil)
        self.peerResponse?.receivedEntry.body = []
        for piece in taken.receivedEntry.body { bodyReceived(piece) }
        if let end = taken.receivedEntry.end { bodyEnded(end) }
    }

    /// What was stored here before is not to be used any more, as where the origin was asked.
    private func removeSuperseded(by status: UInt16, isStored: Bool) {
        guard let stale = fetch.staleEntry, !StatusRules.isTransient(status) else { return }
        let before = driver.storedState(stale, now: SystemClock.now())
        if isStored || before != .fresh { context.node.remove(stale) }
    }

    /// True of a whole that cannot be stored, where the one who caused the fetch wants a part.
    private func shouldFetchPart(_ entry: PeerEntry) -> Bool {
        guard !siteRequest.isImage, entry.status == 200, fetch.staleEntry == nil,
            entry.terms.restrictions.isDisjoint(with: [.isStaleIfError, .hasPrivateFields]),
            entry.terms.restrictions.contains(.isNoStore)
                || entry.facts.size ?? 0 > siteRequest.policy.objectBytesMax
        else { return false }
        return siteRequest.requestsPart(rangesMax: fetch.settings.rangesMax)
    }

    /// The origin has failed the peer, which gives what it has stored; true if that is to be taken.
    private func acceptsStaleFallback(_ taken: PeerResponse) -> Bool {
        if siteRequest.isBackground { context.pauseBackground(siteRequest, now: SystemClock.now()) }
        if let stale = fetch.staleEntry,
            driver.serveStaleOnError(stale, status: taken.entry.terms.originErrorStatus)
        {
            taken.request.cancel()
            driver.finish()
            return false
        }
        guard !taken.isNotModified,
            siteRequest.isUsableOnError(taken.metadata, now: SystemClock.now())
        else {
            taken.request.cancel()
            driver.peerResponseRejected()
            return false
        }
        return true
    }

    /// Finds where the answer is to stand; false if it cannot be stored.
    private func resolveEntryKey(_ nominated: FieldNames) -> Bool {
        switch context.node.location(siteRequest, selectedBy: nominated, claimsIndex: true) {
        case .primary: return true
        case .variant(let place, let index):
            variant = (place, index)
            return true
        case .unstorable: return false
        }
    }

    /// The stored body stays, with the facts and the head that the peer has for it.
    private func freshenStored(_ taken: PeerResponse) {
        var facts = taken.metadata
        guard let stale = fetch.staleEntry, taken.entry.facts.size == stale.metadata.size else {
            return driver.peerResponseRejected()
        }
        facts.size = stale.metadata.size
        let nominated = siteRequest.nominated(head: taken.head.bytes)
        var place = EntryKey(key: stale.key, hash: stale.hash)
        if nominated != siteRequest.nominated(of: stale) {
            // What other fields select than before stands elsewhere (RFC 9111 §4.1).
            guard resolveEntryKey(nominated) else { return driver.peerResponseRejected() }
            place = variant?.place ?? EntryKey(key: siteRequest.key, hash: siteRequest.hash)
        }
        let entry = fetch.makeFreshenedEntry(
            stale, EntryName(ofKey: place.key), tags: taken.entry.tags, place: place, facts,
            taken.head)
        context.counters.add(.peerResponsesUsed)
        let isKept = !taken.entry.terms.restrictions.contains(.isNoStore) && entry != nil
        if !isKept || place.key != stale.key { context.node.remove(stale) }
        if let entry, isKept { insertEntry(entry) }
        fetch.storedResponseUsed(
            entry ?? stale, isShared: !taken.entry.terms.restrictions.contains(.isPrivate),
            isStored: isKept, nominated: nominated, isFromPeer: true)
        driver.finish()
    }

    /// The origin has answered the peer with an error of this status.
    private func originErrorReceived(_ status: UInt16) {
        if fetch.siteRequest.isBackground {
            context.pauseBackground(fetch.siteRequest, now: SystemClock.now())
        }
        if let stale = fetch.staleEntry {
            if StatusRules.isFailure(status), driver.serveStaleOnError(stale, status: status) {
                return driver.finish()
            }
            let before = driver.storedState(stale, now: SystemClock.now())
            if fetch.siteRequest.policy.isInvalidated(before, byRefusal: status) {
                context.node.remove(stale)
            }
        }
        // Which of them it depended on the peer does not say.
        driver.fail(.originStatus(status), nominated: VaryNames.imageFields)
    }
}
