import Cluster
import Ground
import HTTPRules
import NIOCore
import Origin
import Peering
import Platform
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// Response source of an ``ActiveFetch`` that queries peers: it sends the queries of the owner
/// search and delivers the accepted response.
///
/// Confined to the fetch's event loop.
final class PeerSource: ResponseSource, PeerRequestDelegate {
    /// The driver of the lookup that this source belongs to.
    let driver: LookupDriver
    /// The fetch that receives the response.
    let fetch: ActiveFetch
    unowned let context: EventLoopContext
    /// The node's membership.
    let hub: PeerHub
    /// The name of the response under its primary key, without variants.
    let name: EntryName
    /// The request of the fetch.
    var siteRequest: SiteRequest { fetch.siteRequest }
    /// The queries whose final reply is outstanding.
    private var requests: [PeerRequest] = []
    /// The last reply that can be accepted; it is accepted at once or never.
    private var pendingReply: (node: NodeID, what: PendingReply)?
    /// The accepted response, which supplies the body.
    var peerResponse: PeerResponse?
    /// The placement of the response.
    var placement = EntryPlacement(nominated: FieldNames())
    /// The number of recent uses of the entry on this node.
    let frequency: UInt8
    /// The number and bytes of interim heads that peers have relayed.
    private var interimTotals = (count: 0, bytes: 0)

    /// A reply that can be accepted.
    private enum PendingReply {
        case entry(PeerResponse)
        /// The origin responded to the peer with this error status.
        case originError(UInt16)
    }

    /// A response that a peer is sending.
    struct PeerResponse {
        /// The query that it replies to.
        let request: PeerRequest
        /// The head, and the body bytes that came in the same turn of the loop.
        var receivedEntry: ReceivedEntry
        /// The parsed head.
        let head: RenderedHead
        /// True if the peer confirmed the stored response; no body follows.
        let isNotModified: Bool
        /// The time at which the head arrived.
        let receivedAt: Instant
        /// The body bytes received so far.
        var receivedBytes: UInt64 = 0
        /// The body bytes passed to the fetch but not yet acknowledged to the peer.
        var unacknowledgedBytes = 0

        /// The entry as the peer has described it.
        var entry: PeerEntry { receivedEntry.entry }
        /// True if the whole body came with the head, without trailers.
        var isWhole: Bool { receivedEntry.end?.trailers.isEmpty == true && entry.facts.size != nil }
        /// The metadata of the response on this node's clock.
        var metadata: EntryMetadata {
            entry.facts.entryFacts(at: receivedAt, requestedAt: request.createdAt)
        }
    }

    /// Creates a source for the driver's fetch, and counts a use of its key.
    init(_ driver: LookupDriver, name: EntryName, hub: PeerHub) {
        self.driver = driver
        fetch = driver.fetch
        context = driver.context
        self.name = name
        self.hub = hub
        frequency = context.node.recordUse(fetch.hash)
    }

    /// The number of recent uses from which entries of other owners stay in memory even if others
    /// must be evicted for them.
    static let popularFrequencyMin: UInt8 = 2

    /// The part of the accepted response that readers may have received, for resuming it from
    /// another source.
    var partialResponse: ResumptionSource.PartialResponse? {
        peerResponse.map {
            ResumptionSource.PartialResponse(
                metadata: $0.metadata, head: $0.head, sizeBytes: $0.entry.facts.size)
        }
    }

    /// The body bytes of the accepted response received so far.
    var receivedBytes: UInt64 { peerResponse?.receivedBytes ?? 0 }

    // MARK: Commands of the fetch

    /// Acknowledges held bytes to the peer once the fetch is no longer paused.
    func updateFlow() {
        guard let peerResponse, !fetch.isPaused, peerResponse.unacknowledgedBytes > 0 else {
            return
        }
        self.peerResponse?.unacknowledgedBytes = 0
        peerResponse.request.connection.bytesConsumed(
            peerResponse.unacknowledgedBytes, of: peerResponse.request)
    }

    /// Cancels all queries.
    func cancel() {
        for ask in requests { ask.cancel() }
        peerResponse?.request.cancel()
    }

    /// Cancels the query to one peer.
    func cancel(_ node: NodeID) {
        removeRequest(node)?.cancel()
    }

    /// Removes the query to a peer, so that no further events of it are expected.
    @discardableResult
    private func removeRequest(_ node: NodeID) -> PeerRequest? {
        requests.firstIndex { $0.node == node }.map { requests.remove(at: $0) }
    }

    // MARK: Replies of peers

    /// Handles an event of a query; see ``PeerRequestDelegate``.
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

    /// Handles a reply without a body.
    private func replyReceived(_ response: PeerReply, _ ask: PeerRequest) {
        let node = ask.node
        var reply = OwnerSearch.Reply(response)
        switch response {
        case .notModified(let entry):
            // A peer may confirm a stored response that it was not asked about.
            reply =
                fetch.staleEntry == nil
                ? .declined
                : evaluate(ReceivedEntry(entry: entry), of: ask, isConfirmation: true)
        case .originFailed(let failure) where failure.status >= 400 && ask.query.kind == .get:
            pendingReply = (node, .originError(failure.status))
            // For a site, the error response is this client's, and the owner has not stored it.
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

    /// Relays an interim head of the peer that will supply the response, within the limits for
    /// origins.
    private func relay(interim head: [UInt8], of ask: PeerRequest) {
        let limits = context.node.origins.settings
        interimTotals = (interimTotals.count + 1, interimTotals.bytes + head.count)
        // With several queries, only interim heads of the get query are relayed.
        guard ask.query.kind == .get, interimTotals.count <= limits.interimResponsesMax,
            interimTotals.bytes <= limits.headBytesMax, InterimResponseHead.isWellFormed(head)
        else { return }
        driver.relay(interim: head)
    }

    /// Checks an offered response, or the confirmation of the stored one, and keeps it as the
    /// pending reply; an invalid head counts as a declined query.
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

    /// Sends a query to a peer; reports the peer as lost if its connection has closed.
    func send(_ question: OwnerSearch.QueryKind, to node: NodeID) {
        guard let connection = hub.connection(to: node) else {
            // The connection has just closed; the search is notified after this step.
            return context.loop.assumeIsolated().execute { [weak driver] in
                driver?.handle { $0.lost(node, SystemClock.now(), effects: &$1) }
            }
        }
        let entityTag = fetch.staleEntry.map { RenderedHead($0).slice($0.metadata.entityTag) } ?? []
        var query = PeerQuery(
            question == .get ? .get : .probe, name: name, key: fetch.key,
            negotiation: siteRequest.negotiation,
            entityTag: entityTag.count > PeerProtocol.entityTagBytesMax ? [] : entityTag,
            request: driver.relayedRequest)
        query.trace = PeerQuery.RequestTrace(fetch.correlation, span: .randomSpanID())
        let ask = PeerRequest(
            node, query, on: connection, for: self, on: context.loop, counters: context.counters)
        requests.append(ask)
        context.counters.add(question == .get ? .peerGetsSent : .peerProbesSent)
        connection.send(ask)
    }

    // MARK: The response

    /// Accepts the pending reply of this peer as the response; without one, the origin is
    /// contacted.
    func acceptResponse(from node: NodeID) {
        guard let said = pendingReply.take(), said.node == node else {
            return driver.peerResponseRejected()
        }
        switch said.what {
        case .originError(let status): originErrorReceived(status)
        case .entry(let taken): accept(taken)
        }
    }

    /// Accepts a response: checks its terms, reserves memory, and delivers its head and the body
    /// received so far, unless a stored response, an error or another source takes its place.
    private func accept(_ taken: PeerResponse) {
        self.peerResponse = taken
        if taken.entry.terms.restrictions.contains(.isStaleIfError), !acceptsStaleFallback(taken) {
            return
        }
        if taken.isNotModified { return freshenStored(taken) }
        let (entry, head, length) = (taken.entry, taken.head, taken.entry.facts.size)
        let facts = taken.metadata
        let limits = entry.terms.restrictions
        // The owner has no stale response, or it would have sent that.
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
        let isStored = !limits.contains(.isNoStore) && resolvePlacement(nominated)
        if !limits.contains(.isStaleIfError) {
            removeSuperseded(by: entry.status, isStored: isStored)
        }
        let isKept = isStored && fetch.reserveEntry(length, head, name: name, at: placement)
        guard isKept || fetch.openWindow() else {
            taken.request.cancel()
            return driver.fail(.overloaded(.memory))
        }
        context.counters.add(.peerResponsesUsed)
        if limits.contains(.isHitForMiss), !siteRequest.isImage {
            context.node.entries.recordHitForMiss(siteRequest, now: SystemClock.now())
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

    /// Removes the stored response that the new one supersedes, as after a response of the origin.
    private func removeSuperseded(by status: UInt16, isStored: Bool) {
        guard let stale = fetch.staleEntry, !StatusRules.isTransient(status) else { return }
        let before = driver.storedState(stale, now: SystemClock.now())
        if isStored || before != .fresh { context.node.entries.remove(stale) }
    }

    /// Returns true if the response cannot be stored and the request that caused the fetch wants a
    /// part of it.
    private func shouldFetchPart(_ entry: PeerEntry) -> Bool {
        guard !siteRequest.isImage, entry.status == 200, fetch.staleEntry == nil,
            entry.terms.restrictions.isDisjoint(with: [.isStaleIfError, .hasPrivateFields]),
            entry.terms.restrictions.contains(.isNoStore)
                || entry.facts.size ?? 0 > siteRequest.policy.objectBytesMax
        else { return false }
        return siteRequest.requestsPart(rangesMax: fetch.settings.rangesMax)
    }

    /// Handles a stored response that the peer sends because its origin failed; returns true if it
    /// is to be delivered, false if this node's own or another source takes its place.
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

    /// Resolves ``placement``; returns false if the response cannot be stored.
    private func resolvePlacement(_ nominated: FieldNames) -> Bool {
        let place = context.node.entries.placement(
            siteRequest, selectedBy: nominated, claimsIndex: true)
        if let place { placement = place }
        return place != nil
    }

    /// Serves the stored body with the metadata and head that the peer has sent for it, or rejects
    /// the response if it does not match the body.
    private func freshenStored(_ taken: PeerResponse) {
        var facts = taken.metadata
        guard let stale = fetch.staleEntry, taken.entry.facts.size == stale.metadata.size else {
            return driver.peerResponseRejected()
        }
        facts.size = stale.metadata.size
        let nominated = siteRequest.nominated(head: taken.head.bytes)
        var place = EntryKey(key: stale.key, hash: stale.hash)
        if nominated != siteRequest.nominated(of: stale) {
            // A response selected by other fields than before has another key (RFC 9111 §4.1).
            guard resolvePlacement(nominated) else { return driver.peerResponseRejected() }
            place = placement.key ?? EntryKey(key: siteRequest.key, hash: siteRequest.hash)
        }
        let entry = fetch.makeFreshenedEntry(
            stale, EntryName(ofKey: place.key), tags: taken.entry.tags, place: place, facts,
            taken.head)
        context.counters.add(.peerResponsesUsed)
        let isKept = !taken.entry.terms.restrictions.contains(.isNoStore) && entry != nil
        if !isKept || place.key != stale.key { context.node.entries.remove(stale) }
        if let entry, isKept { insertEntry(entry) }
        fetch.storedResponseUsed(
            entry ?? stale, isShared: !taken.entry.terms.restrictions.contains(.isPrivate),
            isStored: isKept, nominated: nominated, isFromPeer: true)
        driver.finish()
    }

    /// Fails the fetch with an error status that the peer has received from the origin, unless a
    /// stale response is served instead; removes a stored response that the status invalidates.
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
                context.node.entries.remove(stale)
            }
        }
        // The peer does not report which request fields it depended on.
        driver.fail(.originStatus(status), nominated: VaryNames.imageFields)
    }
}
