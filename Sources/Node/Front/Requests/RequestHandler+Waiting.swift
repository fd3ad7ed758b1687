import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Wire

extension RequestHandler {
    /// Answers from what memory has for a request that takes a second look, or waits.
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
            // Asked for whole, it is stored as soon as it may be.
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

    /// Gives an entry, or the part of it that is asked for.
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

    /// Waits for the disk, for other nodes, or for the origin; `glance` is what is known of the
    /// disk.
    func awaitResponse(
        _ query: SiteRequest, _ pending: BufferedRequest, _ facts: RequestTraits,
        _ reason: CacheHandling.Reason, stale: MemoryEntry? = nil, alone: Bool = false,
        _ glance: ImmediateDiskLookup? = nil, now: Instant
    ) {
        let asksDisk =
            context.node.disk != nil && stale == nil && !alone && glance?.needsBlockingRead != false
        if query.cacheControl.isOnlyIfCached, !asksDisk { return sendProblem(.notCached) }
        // An answer to HEAD is not stored, nor is what the client forbids to be; of an image the
        // whole is asked for.
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

    /// Joins or causes the fetch for `waiting`, as soon as the loop has time for it.
    func enqueueFetch(_ waiting: PendingResponse, alone: Bool) {
        guard context.acquireTurn(waiting, of: shareHolder) else {
            return waiting.queueEntry = (self, alone)
        }
        beginFetch(waiting, alone: alone)
    }

    /// The same, now: it has its turn.
    func beginFetch(_ waiting: PendingResponse, alone: Bool) {
        guard let query = waiting.query else { return }
        let node = context.node
        guard node.waiterCount < settings.waitersMax else {
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
            switch query.find(in: node.store, now: SystemClock.now()) {
            case .found(let found, .fresh): return found
            case .found(let found, .stale):
                note = .stale(.memory)
                return found
            case .found(_, .unusable): break
            // Said since this request came: nobody is to wait for it.
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
            // What is to be freshened, or to stand in for an origin that fails.
            if query.mode == .whole, lookUp() != nil { stale = nil }
            let (run, reader) = node.fetches.startExclusive(query, start: begin)
            admission = .started(run, reader)
        } else {
            admission = node.fetches.admit(query, lookUp: lookUp, start: begin)
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
            cacheResult = stale == nil ? .miss : .revalidated
            waiting.isInitiator = true
            if query.mode == .verbatim { cacheResult = .passed }
            if stale != nil, query.isImage || waiting.reason == .uriMiss { waiting.reason = .stale }
            waiting.isCollapsed = false
            joinFetch(waiting, to: run, as: reader)
            // What may not be shared is not stored; others may not wait with a site's request.
            let asksDisk = waiting.asksDisk && (!alone || !query.isImage) && stale == nil
            // Who has to begin anew may find there what others have left.
            waiting.asksDisk = query.isImage
            let driver = context.startFetch(run, name: waiting.name, asksDisk: asksDisk, for: self)
            upload?.source = driver.uploadSource
            proceed()
            if upload != nil, upload?.source == nil { abandonUpload() }
        }
    }

    func joinFetch(_ waiting: PendingResponse, to run: ActiveFetch, as reader: Fetch.ReaderID) {
        waiting.fetch = run
        waiting.reader = reader
        context.node.waiterJoined()
    }

    /// Goes on with the answer in progress as far as fetch and socket allow.
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

    /// A request waits no more for the head of its answer; others go on waiting for theirs.
    func waitTimeoutReached() {
        guard let pendingResponse else { return }
        guard pendingResponse.isAtHead else {
            if upload?.isTunnel == true { return finishPendingResponse(pendingResponse) }
            // The answer has begun before the request was whole.
            if upload?.source?.isFull == false { abort() }
            return
        }
        if pendingResponse.queueEntry != nil { return fail(with: .overloaded(.waitTime)) }
        guard let run = pendingResponse.fetch, case .pending = run.snapshot.progress.outcome else {
            return
        }
        if upload?.source?.isFull == true {
            // It is the origin that takes its time.
            return deadline = SystemClock.now() + settings.bodyTimeout
        }
        guard upload == nil else {
            return fail(with: .requestTimeout("body", seconds: settings.bodyTimeout.seconds))
        }
        // Who waits for another's fetch then goes by itself.
        if pendingResponse.isCollapsed, !pendingResponse.isForImage {
            leaveFetch(pendingResponse)
            deadline = SystemClock.now() + settings.waitTimeout
            return enqueueFetch(pendingResponse, alone: true)
        }
        fail(with: .overloaded(.waitTime))
    }

    // MARK: The end

    func finishPendingResponse(_ waiting: PendingResponse) {
        leaveFetch(waiting)
        self.pendingResponse = nil
        abandonUpload()
        finishResponse()
        resumeRequests()
    }

    /// After an answer that had to wait: what the client has sent meanwhile is looked at.
    func resumeRequests() {
        guard !isResponding else { return }
        writer?.resumeRequests()
    }

    func leaveFetch(_ waiting: PendingResponse) {
        guard let run = waiting.fetch else { return }
        waiting.fetch = nil
        context.node.waiterLeft()
        if let reader = waiting.reader { run.leave(reader) }
    }
}

extension CacheHandling.Reason {
    /// What RFC 9211 §2.2 calls it.
    fileprivate init(_ reason: ValidationReason) {
        switch reason {
        case .stale, .noCache: self = .stale
        case .requestNoCache, .requestMaxAge, .requestMinFresh: self = .request
        }
    }
}
