import Ground
import HTTPRules
import Origin
import Peering
import Platform
import Serving
import Store
import Telemetry

/// A response that memory could not serve within the read that brought the request: it waits for a
/// fetch and sends what that receives.
///
/// Confined to the event loop of its handler, which processes no further request until the response
/// has ended.
final class PendingResponse {
    /// The handler, whose ``RequestHandler/pendingResponse`` this is until the end.
    let handler: RequestHandler
    /// Sender of the response.
    let response: ResponseSender
    let context: EventLoopContext
    /// The request as received.
    let request: BufferedRequest
    /// The request as the cache and the origin see it.
    let query: SiteRequest
    /// Traits of the request, such as conditions and ranges.
    let facts: RequestTraits
    /// Holder of the quotas that the request uses; `nil` for none, see
    /// ``RequestHandler/quotaHolder``.
    let quotaHolder: QuotaHolder?
    /// What Cache-Status and the metrics report of the fetch.
    var forwarding: ForwardingRecord { didSet { response.cacheResult = forwarding.outcome } }
    /// Name of the URL's primary entry on disk; `nil` without a disk tier.
    var name: EntryName?
    /// True if the disk may have the response and was not read yet.
    var asksDisk = false
    /// True if a transfer from a peer broke off, so that peers are skipped.
    var skipsPeers = false
    /// The fetch; `nil` before it is joined and after the end.
    private(set) var fetch: ActiveFetch?
    /// The request's reader of ``fetch``.
    private(set) var reader: Fetch.ReaderID?
    /// Progress of the response.
    var stage = Stage.awaitingHead
    /// While the request waits for a turn of ``MissScheduler``, whether its fetch is for it alone;
    /// otherwise `nil`.
    private var queuedAlone: Bool?
    /// The body of the request while it is forwarded.
    var upload: Upload?

    /// Progress of a pending response.
    enum Stage {
        /// Nothing was sent.
        case awaitingHead
        /// The body is sent while it is received.
        case streaming(BodyTransfer)
    }

    var settings: NodeSettings { context.settings }

    /// Creates a pending response at its head, and starts its time limit.
    init(to lookup: LookupRequest, reason: CacheHandling.Reason, now: Instant) {
        handler = lookup.handler
        response = handler.response
        context = handler.context
        quotaHolder = handler.quotaHolder
        request = lookup.received
        query = lookup.query
        facts = lookup.facts
        forwarding = ForwardingRecord(reason: reason)
        response.requestKey = query.key
        response.wait(until: now + settings.waitTimeout)
    }

    /// True if nothing of the response was sent.
    var isAtHead: Bool {
        if case .awaitingHead = stage { true } else { false }
    }

    /// True if the request waits for a turn of ``MissScheduler``.
    var isQueued: Bool { queuedAlone != nil }

    // MARK: The fetch

    /// Joins or starts the fetch, at once or when ``MissScheduler`` grants a turn; `alone` is true
    /// for a fetch that other requests do not share.
    func enqueueFetch(alone: Bool) {
        guard context.missScheduler.acquireTurn(self, of: quotaHolder) else {
            return queuedAlone = alone
        }
        beginFetch(alone: alone)
    }

    /// Joins or starts the fetch, whose turn was granted; fails if too many requests wait.
    private func beginFetch(alone: Bool) {
        guard context.node.waiterCount < settings.waitersMax else {
            return fail(with: .overloaded(.waiters))
        }
        var lookup = FetchLookup(query, in: context.node.store)
        lookup.options.isExclusive = alone
        lookup.options.skipsPeers = skipsPeers
        let admission: FetchTable.Admission
        if alone {
            // Finds the entry to revalidate, or to stand in for a failing origin.
            if query.mode == .whole, lookup.run() != nil { lookup.stale = nil }
            let (run, reader) = context.node.fetches.startExclusive(query) { begin(lookup) }
            admission = .started(run, reader)
        } else {
            admission = context.node.fetches.admit(
                query, lookUp: { lookup.run() }, start: { begin(lookup) })
        }
        switch admission {
        case .stored(let entry):
            response.cacheResult = lookup.handling == .hit(.memory) ? .hit : .stale
            serve(entry, handling: lookup.handling)
        case .joined(let run, let reader):
            forwarding.joined()
            if query.hasLoopIdentifier {
                response.deadline = min(
                    response.deadline, SystemClock.now() + NodeSettings.joinedWaitTimeout)
            }
            join(run, as: reader)
            proceed()
        case .started(let run, let reader): started(run, as: reader, lookup.stale, alone: alone)
        }
    }

    /// Creates the fetch for the request from the results of `lookup`.
    private func begin(_ lookup: FetchLookup) -> ActiveFetch {
        ActiveFetch(
            query, stale: lookup.stale, on: context, cause: response.cause(request),
            client: quotaHolder, expected: lookup.expected, wish: lookup.options)
    }

    /// Starts the driver of the fetch that this request has caused.
    private func started(
        _ run: ActiveFetch, as reader: Fetch.ReaderID, _ stale: MemoryEntry?, alone: Bool
    ) {
        forwarding.started(by: query, isValidation: stale != nil)
        join(run, as: reader)
        // An image is fetched alone because its response is not shared, so the disk has none;
        // a site's request may be alone for other reasons.
        let readsDisk = asksDisk && (!alone || !query.isImage) && stale == nil
        // A restarted request may find there what others have stored.
        asksDisk = query.isImage
        let driver = LookupDriver(run, name: name, on: context, for: self)
        context.fetches.start(driver, readsDisk: readsDisk)
        upload?.source = driver.uploadSource
        proceed()
        if upload != nil, upload?.source == nil { abandonUpload() }
    }

    /// Makes the request a reader of the fetch.
    private func join(_ run: ActiveFetch, as reader: Fetch.ReaderID) {
        fetch = run
        self.reader = reader
        context.node.waiterJoined()
    }

    /// Leaves the fetch, if there is one.
    func leaveFetch() {
        guard let run = fetch else { return }
        fetch = nil
        context.node.waiterLeft()
        if let reader { run.leave(reader) }
    }

    /// Handles the deadline of the wait for the head, or for more of the request body.
    ///
    /// At the end of the wait for the head, the request fails; one to a site that has waited for
    /// the fetch of another request fetches alone instead.
    func deadlineReached() {
        guard isAtHead else {
            if upload?.isTunnel == true { return finish() }
            // The response began before the request was complete.
            if upload?.source?.isFull == false { abort() }
            return
        }
        if isQueued { return fail(with: .overloaded(.waitTime)) }
        guard let run = fetch, case .pending = run.snapshot.progress.outcome else { return }
        if upload?.source?.isFull == true {
            // The origin is slow, not the client.
            return response.deadline = SystemClock.now() + settings.bodyTimeout
        }
        guard upload == nil else {
            return fail(with: .requestTimeout("body", seconds: settings.bodyTimeout.seconds))
        }
        // A request that waits for another's fetch then fetches independently.
        if forwarding.isCollapsed, !query.isImage {
            leaveFetch()
            response.deadline = SystemClock.now() + settings.waitTimeout
            return enqueueFetch(alone: true)
        }
        fail(with: .overloaded(.waitTime))
    }

    // MARK: The end

    /// Ends a response that was sent completely.
    func finish() {
        detach()
        response.finishResponse()
        response.resumeRequests()
    }

    /// Sends `problem` as the response, of which nothing was sent yet, and ends it.
    func fail(with problem: Problem) {
        let status = forwarding.status(
            of: problem, fetch?.snapshot, isFenced: !context.fence.isOpen(at: SystemClock.now()),
            key: response.pendingKey)
        detach()
        if response.plane == .data, let counter = problem.counter { context.counters.add(counter) }
        response.sendProblem(problem, status)
        response.resumeRequests()
    }

    /// Aborts the response, so that the client does not take it for complete.
    func abort() {
        cancel()
        response.abort()
    }

    /// Ends without a response, or without the rest of one.
    func cancel() {
        abandonUpload()
        detach()
    }

    /// Leaves the fetch and the handler, and abandons an incomplete upload.
    func detach() {
        leaveFetch()
        handler.ended(self)
        abandonUpload()
    }
}

extension PendingResponse: MissSchedulerWaiter {
    /// Joins or starts the fetch that has waited for its turn; does nothing if the response has
    /// ended.
    func turnGranted(now: Instant) {
        guard let alone = queuedAlone.take(), handler.pendingResponse === self else { return }
        beginFetch(alone: alone)
        if handler.acceptsUpload { response.writer?.resumeRequestBody() }
        response.writer?.flush()
    }
}

/// The memory lookup that precedes a fetch, and its results for the fetch.
private struct FetchLookup {
    private let query: SiteRequest
    private let store: MemoryStore
    /// The entry to revalidate; `nil` for none.
    var stale: MemoryEntry?
    /// The fields by which the response is expected to vary.
    private(set) var expected = FieldNames()
    /// Options of the fetch.
    var options = Lookup.Options()
    /// The handling of an entry that was found.
    private(set) var handling = CacheHandling.hit(.memory)

    /// Creates a lookup that was not run.
    init(_ query: SiteRequest, in store: MemoryStore) {
        self.query = query
        self.store = store
    }

    /// Looks up the request in memory; returns an entry that may be served at once, otherwise
    /// `nil`, with the results for the fetch recorded.
    mutating func run() -> MemoryEntry? {
        switch query.find(in: store, now: SystemClock.now()) {
        case .found(let found, .fresh): return found
        case .found(let found, .stale):
            handling = .stale(.memory)
            return found
        case .found(_, .unusable): break
        // Recorded since the request arrived: no request may wait for this fetch.
        case .hitForMiss: options.isExclusive = true
        case .found(let found, _):
            stale = found
            expected = query.nominated(of: found)
        case .miss(let names): expected = names
        }
        return nil
    }
}
