import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Wire

extension RequestHandler {
    /// Responds on the slow path, from the result of the memory lookup.
    func respond(
        _ query: SiteRequest, _ pending: BufferedRequest, _ facts: RequestTraits,
        _ finding: SiteLookupResult, now: Instant
    ) {
        switch finding {
        case .found(let entry, .fresh):
            cacheResult = .hit
            send(entry, pending, facts, handling: .hit(.memory), now: now)
        case .found(let entry, .stale(let use)):
            cacheResult = .stale
            if use == .whileRevalidate {
                context.revalidateInBackground(
                    query, entry, cause: cause(pending), client: shareHolder, now: now)
            }
            send(entry, pending, facts, handling: .stale(.memory), now: now)
        case .found(let entry, .mustValidate(let reason)):
            awaitResponse(query, pending, facts, .init(reason), stale: entry, now: now)
        case .found(_, .unusable):
            awaitResponse(query, pending, facts, .request, alone: true, now: now)
        case .hitForMiss:
            guard !query.cacheControl.isOnlyIfCached else { return sendProblem(.notCached) }
            // A complete GET is fetched so that its response is stored once that is permitted.
            guard facts.isSelective || query.isExclusive else {
                return awaitResponse(query, pending, facts, .miss, alone: true, now: now)
            }
            pass(query.verbatimVariant, pending, facts, .miss, now: now)
        case .miss(let expected):
            let record = context.sendfileRecord(query, facts, writer, now)
            if let record { return send(record, now: now) }
            let glance = context.lookUpDiskImmediately(query)
            if case .hit(let entry) = glance {
                cacheResult = .disk
                return send(entry, pending, facts, handling: .hit(.disk), now: now)
            }
            awaitResponse(
                query, pending, facts, expected.isEmpty ? .uriMiss : .varyMiss, glance, now: now)
        }
    }

    /// Sends an entry, or the part of it that the request selects.
    func send(
        _ entry: MemoryEntry, _ pending: BufferedRequest, _ facts: RequestTraits,
        handling: CacheHandling,
        now: Instant
    ) {
        context.touch(entry, now: now)
        guard facts.isSelective, entry.status == 200 else {
            return sendWhole(entry, handling: handling, isHead: facts.isHead, now: now)
        }
        let selection = select(pending, facts, of: entry.metadata, RenderedHead(entry))
        send(selection, of: entry, handling: handling, isHead: facts.isHead, now: now)
    }

    /// Waits for a response from the disk, other nodes, or the origin.
    ///
    /// - Parameters:
    ///   - query: the request to a site or for an image.
    ///   - pending: the buffered head of the request.
    ///   - facts: the traits of the request.
    ///   - reason: why memory did not serve the request, for Cache-Status.
    ///   - stale: the stored response to revalidate; `nil` for none.
    ///   - alone: true for a fetch that other requests do not share.
    ///   - glance: result of the immediate disk lookup; `nil` if there was none.
    ///   - now: the current time.
    func awaitResponse(
        _ query: SiteRequest, _ pending: BufferedRequest, _ facts: RequestTraits,
        _ reason: CacheHandling.Reason, stale: MemoryEntry? = nil, alone: Bool = false,
        _ glance: ImmediateDiskLookup? = nil, now: Instant
    ) {
        let asksDisk =
            context.node.disk != nil && stale == nil && !alone && glance?.needsBlockingRead != false
        if query.cacheControl.isOnlyIfCached, !asksDisk { return sendProblem(.notCached) }
        // Responses to HEAD or with the client's no-store are not stored. Images are always fetched
        // completely.
        if !query.isImage, !asksDisk, facts.isHead || query.cacheControl.isNoStore {
            return pass(
                query.verbatimVariant, pending, facts,
                query.cacheControl.isNoStore ? .request : reason,
                now: now)
        }
        let waiting = makePendingResponse(for: query, pending, facts, reason, now: now)
        waiting.name =
            context.node.disk == nil ? nil : glance?.name ?? EntryName(ofKey: query.key)
        waiting.asksDisk = asksDisk
        enqueueFetch(waiting, alone: alone || query.isExclusive)
    }

    /// Makes the pending response of the request, with its time limit.
    func makePendingResponse(
        for query: SiteRequest, _ pending: BufferedRequest, _ facts: RequestTraits,
        _ reason: CacheHandling.Reason, now: Instant
    ) -> PendingResponse {
        isResponding = true
        requestKey = query.key
        deadline = now + settings.waitTimeout
        let waiting = PendingResponse(pending, query, facts: facts, reason: reason)
        self.pendingResponse = waiting
        return waiting
    }

    /// Joins or starts the fetch for `waiting`, when ``MissScheduler`` grants a turn.
    func enqueueFetch(_ waiting: PendingResponse, alone: Bool) {
        guard context.acquireTurn(waiting, of: shareHolder) else {
            return waiting.queueEntry = (self, alone)
        }
        beginFetch(waiting, alone: alone)
    }

    /// Joins or starts the fetch for `waiting`; its turn was granted.
    func beginFetch(_ waiting: PendingResponse, alone: Bool) {
        guard let query = waiting.query else { return }
        guard context.node.waiterCount < settings.waitersMax else {
            return fail(with: .overloaded(.waiters))
        }
        var (stale, expected): (MemoryEntry?, FieldNames) = (nil, FieldNames())
        var note = CacheHandling.hit(.memory)
        var wish = Lookup.Options()
        wish.isExclusive = alone
        wish.skipsPeers = waiting.skipsPeers
        func begin() -> ActiveFetch {
            ActiveFetch(
                query, stale: stale, on: context, cause: cause(waiting.request),
                client: shareHolder, expected: expected, wish: wish)
        }
        func lookUp() -> MemoryEntry? {
            switch query.find(in: context.node.store, now: SystemClock.now()) {
            case .found(let found, .fresh): return found
            case .found(let found, .stale):
                note = .stale(.memory)
                return found
            case .found(_, .unusable): break
            // Recorded since this request arrived: no request may wait for this fetch.
            case .hitForMiss: wish.isExclusive = true
            case .found(let found, _):
                stale = found
                expected = query.nominated(of: found)
            case .miss(let names): expected = names
            }
            return nil
        }
        let admission: FetchTable.Admission
        if alone {
            // Finds the entry to revalidate, or to stand in for a failing origin.
            if query.mode == .whole, lookUp() != nil { stale = nil }
            let (run, reader) = context.node.fetches.startExclusive(query, start: begin)
            admission = .started(run, reader)
        } else {
            admission = context.node.fetches.admit(query, lookUp: lookUp, start: begin)
        }
        switch admission {
        case .stored(let entry):
            cacheResult = note == .hit(.memory) ? .hit : .stale
            serve(waiting, from: entry, handling: note)
        case .joined(let run, let reader):
            cacheResult = .collapsed
            waiting.markCollapsed()
            if query.hasLoopIdentifier {
                deadline = min(deadline, SystemClock.now() + NodeSettings.joinedWaitTimeout)
            }
            joinFetch(waiting, to: run, as: reader)
            proceed()
        case .started(let run, let reader):
            cacheResult =
                query.mode == .verbatim ? .bypassed : stale == nil ? .miss : .revalidated
            waiting.isInitiator = true
            if stale != nil, query.isImage || waiting.reason == .uriMiss { waiting.reason = .stale }
            waiting.isCollapsed = false
            joinFetch(waiting, to: run, as: reader)
            // An image is fetched alone because its response is not shared, so the disk has none;
            // a site's request may be alone for other reasons.
            let asksDisk = waiting.asksDisk && (!alone || !query.isImage) && stale == nil
            // A restarted request may find there what others have stored.
            waiting.asksDisk = query.isImage
            let driver = context.startFetch(run, name: waiting.name, asksDisk: asksDisk, for: self)
            upload?.source = driver.uploadSource
            proceed()
            if upload != nil, upload?.source == nil { abandonUpload() }
        }
    }

    /// Makes `waiting` a reader of the fetch.
    func joinFetch(_ waiting: PendingResponse, to run: ActiveFetch, as reader: Fetch.ReaderID) {
        waiting.fetch = run
        waiting.reader = reader
        context.node.waiterJoined()
    }

    /// Continues the response in progress as far as fetch and socket permit.
    func proceed() {
        while let pendingResponse, isResponding, queuedBytes == 0 {
            let goesOn =
                switch pendingResponse.stage {
                case .awaitingHead: sendHeadIfReady(pendingResponse)
                case .streaming(let transfer): proceed(pendingResponse, transfer)
                case .sendingEntry(let entry, let left): proceed(pendingResponse, entry, left)
                }
            guard goesOn else { break }
        }
        writer?.flush()
    }

    /// Handles the deadline of the response in progress: the wait for its head, or for more of the
    /// request body.
    func deadlineReached() {
        guard let pendingResponse else { return }
        guard pendingResponse.isAtHead else {
            if upload?.isTunnel == true { return finishPendingResponse(pendingResponse) }
            // The response began before the request was complete.
            if upload?.source?.isFull == false { abort() }
            return
        }
        if pendingResponse.queueEntry != nil { return fail(with: .overloaded(.waitTime)) }
        guard let run = pendingResponse.fetch, case .pending = run.snapshot.progress.outcome else {
            return
        }
        if upload?.source?.isFull == true {
            // The origin is slow, not the client.
            return deadline = SystemClock.now() + settings.bodyTimeout
        }
        guard upload == nil else {
            return fail(with: .requestTimeout("body", seconds: settings.bodyTimeout.seconds))
        }
        // A request that waits for another's fetch then fetches independently.
        if pendingResponse.isCollapsed, !pendingResponse.isForImage {
            leaveFetch(pendingResponse)
            deadline = SystemClock.now() + settings.waitTimeout
            return enqueueFetch(pendingResponse, alone: true)
        }
        fail(with: .overloaded(.waitTime))
    }

    // MARK: End of a response

    /// Ends a response that was sent completely.
    func finishPendingResponse(_ waiting: PendingResponse) {
        leaveFetch(waiting)
        self.pendingResponse = nil
        abandonUpload()
        finishResponse()
        resumeRequests()
    }

    /// Processes requests that the client sent while a response was pending.
    func resumeRequests() {
        guard !isResponding else { return }
        writer?.resumeRequests()
    }

    /// Leaves the fetch, if `waiting` has one.
    func leaveFetch(_ waiting: PendingResponse) {
        guard let run = waiting.fetch else { return }
        waiting.fetch = nil
        context.node.waiterLeft()
        if let reader = waiting.reader { run.leave(reader) }
    }
}

extension CacheHandling.Reason {
    /// The reason as RFC 9211 §2.2 names it.
    fileprivate init(_ reason: ValidationReason) {
        switch reason {
        case .stale, .noCache: self = .stale
        case .requestNoCache, .requestMaxAge, .requestMinFresh: self = .request
        }
    }
}
