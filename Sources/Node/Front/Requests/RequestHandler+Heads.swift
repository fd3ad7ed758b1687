import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Synchronization
import Telemetry
import Wire

/// What becomes of a request that waits, before the head of its answer is sent.
extension RequestHandler {
    /// False if there is nothing to do before the door is woken.
    func sendHeadIfReady(_ waiting: PendingResponse) -> Bool {
        // Without a fetch it waits for a turn of the loop.
        guard let run = waiting.fetch, let reader = waiting.reader else { return false }
        let (step, view) = run.nextHeadStep(reader, on: context)
        switch step {
        case .restart(let alone):
            if view.wasPeerTransferLost { waiting.skipsPeers = true }
            leaveFetch(waiting)
            // After a failure it is not the variant that was wrong.
            if !alone, view.phase != .failed, !view.isPart, !view.isUnusable {
                waiting.reason = .varyMiss
            }
            enqueueFetch(
                waiting,
                alone: alone && !view.progress.isRequesterSpecific
                    || waiting.query?.isExclusive == true)
            return false
        case .wait, .fail, .abort, .read, .finish: break
        }
        switch view.progress.outcome {
        case .failed(let problem):
            fail(with: problem)
            return false
        case _ where step == .fail || step == .abort:
            abort()
            return false
        case .pending:
            context.addReader(run, for: self)
            return false
        case .loadedFromDisk(let entry):
            cacheResult = .disk
            let isStale = entry.metadata.freshUntil <= SystemClock.now()
            if isStale { cacheResult = .stale }
            serve(waiting, from: entry, handling: isStale ? .stale(.disk) : .hit(.disk))
            return false
        case .stored(let entry): return proceed(waiting, run, view, stored: entry)
        case .receiving(let response):
            return beginStreaming(
                waiting, (waiting.isInitiator ? view.progress.requesterResponse : nil) ?? response,
                of: run, view)
        }
    }

    /// The whole of the answer is an entry.
    private func proceed(
        _ waiting: PendingResponse, _ run: ActiveFetch, _ view: FetchSnapshot,
        stored entry: MemoryEntry
    ) -> Bool {
        let known = view.progress
        if let stoodIn = known.staleFallback {
            if let note = staleIfErrorHandling(of: stoodIn, by: entry.metadata, to: waiting) {
                serve(waiting, from: entry, handling: note)
            } else {
                fail(with: .notValidated)
            }
            return false
        }
        recordStale(waiting, known)
        if waiting.isInitiator,
            var own = known.requesterResponse ?? responseWithTrailers(known, entry)
        {
            own.isKept = known.isStored
            return beginStreaming(waiting, own, of: run, view)
        }
        if let query = waiting.query, let examination = known.cacheability {
            setDecision(of: query, examination, isKept: known.isStored)
        }
        let isConfirmed = known.isValidated || known.staleEntry?.body === entry.body
        let note = waiting.forwardedHandling(
            status: isConfirmed ? 304 : entry.status, isStored: known.isStored,
            isFromPeer: known.isFromPeer)
        recordSource(of: note)
        serve(
            waiting, from: entry, handling: note,
            appliesSelection: isConfirmed || chargeForRest(waiting, run, view, entry))
        return false
    }

    /// What is said of a stale answer with these facts that is given in the stead of the origin's;
    /// nil if the request does not take it.
    private func staleIfErrorHandling(
        of stoodIn: FetchSnapshot.StaleFallback, by facts: EntryMetadata,
        to waiting: PendingResponse
    ) -> CacheHandling? {
        guard waiting.query?.isUsableOnError(facts, now: SystemClock.now()) != false else {
            return nil
        }
        cacheResult = .stale
        return .staleIfError(waiting.reason, status: stoodIn.status)
    }

    /// Sends the head of an answer whose body is still being received; false if that has to wait
    /// for its end.
    private func beginStreaming(
        _ waiting: PendingResponse, _ response: FetchedResponse, of run: ActiveFetch,
        _ view: FetchSnapshot
    ) -> Bool {
        let now = SystemClock.now()
        let note: CacheHandling
        if let stoodIn = view.progress.staleFallback {
            let fallback = staleIfErrorHandling(of: stoodIn, by: response.metadata, to: waiting)
            guard let fallback else {
                fail(with: .notValidated)
                return false
            }
            note = fallback
        } else if response.isFromDisk {
            cacheResult = .disk
            note = .hit(.disk)
        } else {
            recordStale(waiting, view.progress)
            note = waiting.forwardedHandling(
                status: response.head.status, isStored: response.isKept,
                isFromPeer: view.progress.isFromPeer)
            recordSource(of: note)
        }
        if upload != nil { closesAfterResponse = true }
        if let query = waiting.query, let examination = response.cacheability {
            setDecision(of: query, examination, isKept: response.isKept)
        }
        if response.head.status == 101 {
            beginTunnel(waiting, response, note, now: now)
            return true
        }
        if response.isPassedThrough || response.head.status != 200 {
            return beginPassthrough(waiting, response, of: run, view, note, now: now)
        }
        // Not one that has ended: it made no entry, or the outcome would be that.
        let isKept = view.phase == .storing
        let selection = affordableSelection(
            select(waiting.request, waiting.facts, of: response.metadata, response.head), waiting,
            response, of: run, view)
        switch selection {
        case .notModified:
            end(waiting) { sendNotModified(response.head, response.metadata, note, now: now) }
            return false
        case .preconditionFailed:
            fail(with: .preconditionFailed)
            return false
        case .whole, .parts, .unsatisfiable: break
        }
        let plan = DeliveryPlan.decide(
            mayWaitForEnd(waiting, response, of: run, view)
                ? waiting.facts : waiting.facts.subtracting(.ranged),
            sizeBytes: response.sizeBytes, isKept: isKept, isHTTP10: waiting.request.isHTTP10)
        switch (plan, selection) {
        case (.afterCompletion, _):
            return waitForEnd(run)
        case (.parts, .parts) where isMultipart(selection) && isKept:
            return waitForEnd(run)
        case (.parts, .unsatisfiable):
            end(waiting) { sendRangeNotSatisfiable(size: response.metadata.size) }
            return false
        case (.parts, .parts(let ranges)) where ranges.count == 1:
            sendPartialHead(ranges[0], response.head, response.metadata, note, now: now)
            waiting.stage = .streaming(
                .init(from: ranges[0].first, end: ranges[0].last + 1, isChunked: false))
        case (.parts(let size), _):
            sendWhole(response, .length(size), waiting, note, now: now)
        case (.whole(let framing), _):
            sendWhole(response, framing, waiting, note, now: now)
        }
        if isHeadRequest { finishPendingResponse(waiting) }
        return !isHeadRequest
    }

    /// An answer that is whole and stored, for the one who caused the fetch, if fields came behind
    /// it: those are not stored.
    private func responseWithTrailers(_ known: FetchSnapshot.Progress, _ entry: MemoryEntry)
        -> FetchedResponse?
    {
        guard !known.trailers.isEmpty else { return nil }
        return FetchedResponse(
            metadata: entry.metadata, head: RenderedHead(entry), sizeBytes: nil, isKept: true)
    }

    /// Sends the head of an answer of which nothing is chosen here.
    private func beginPassthrough(
        _ waiting: PendingResponse, _ response: FetchedResponse, of run: ActiveFetch,
        _ view: FetchSnapshot,
        _ note: CacheHandling, now: Instant
    ) -> Bool {
        let hasBody = !isHeadRequest && response.head.status != 204 && response.head.status != 304
        let plan = DeliveryPlan.decide(
            RequestTraits(isHead: waiting.facts.isHead, isConditional: false, isRanged: false),
            sizeBytes: response.sizeBytes, isKept: view.phase == .storing,
            isHTTP10: waiting.request.isHTTP10)
        switch plan {
        case .afterCompletion: return waitForEnd(run)
        case .parts(let size): sendWhole(response, .length(size), waiting, note, now: now)
        case .whole(let framing):
            sendWhole(
                response, hasBody || isHeadRequest ? framing : .none, waiting, note, now: now)
        }
        if !hasBody { finishPendingResponse(waiting) }
        return hasBody
    }

    /// What another node had is no miss of the cluster's.
    private func recordSource(of note: CacheHandling) {
        if case .forwarded(_, _, _, _, isFromPeer: true) = note, cacheResult == .miss {
            cacheResult = .peer
        }
    }

    /// The disk had what the origin was then asked about.
    private func recordStale(_ waiting: PendingResponse, _ known: FetchSnapshot.Progress) {
        guard known.staleEntry != nil else { return }
        if waiting.isForImage || waiting.reason == .uriMiss { waiting.reason = .stale }
        if !waiting.isCollapsed { cacheResult = .revalidated }
    }

    private func isMultipart(_ selection: Selection) -> Bool {
        if case .parts(let ranges) = selection { return ranges.count > 1 }
        return false
    }

    private func sendWhole(
        _ response: FetchedResponse, _ framing: ResponseFraming, _ waiting: PendingResponse,
        _ note: CacheHandling,
        now: Instant
    ) {
        sendWholeHead(response, framing, note, now: now)
        var end: UInt64?
        if case .length(let bytes) = framing { end = bytes }
        waiting.stage = .streaming(.init(from: 0, end: end, isChunked: framing == .chunked))
    }

    /// Gives an entry to a request that waited for it: all of it, whatever is asked for, unless it
    /// `isCut`.
    func serve(
        _ waiting: PendingResponse, from entry: MemoryEntry, handling: CacheHandling,
        appliesSelection: Bool = true
    ) {
        leaveFetch(waiting)
        self.pendingResponse = nil
        let isHead = waiting.facts.contains(.head)
        if appliesSelection, waiting.facts.isSelective, entry.status == 200 {
            let selection = select(
                waiting.request, waiting.facts, of: entry.metadata, RenderedHead(entry))
            send(selection, of: entry, handling: handling, isHead: isHead, now: SystemClock.now())
        } else {
            sendWhole(entry, handling: handling, isHead: isHead, now: SystemClock.now())
        }
        resumeRequests()
    }

    /// Ends a wait with an answer that needs nothing of the fetch any more.
    private func end(_ waiting: PendingResponse, _ send: () -> Void) {
        leaveFetch(waiting)
        self.pendingResponse = nil
        send()
        resumeRequests()
    }

    /// True if the fetch has ended, or is no longer kept, so that the answer has to be planned
    /// anew.
    func waitForEnd(_ run: ActiveFetch) -> Bool {
        guard run.awaitCompletion(on: context) else { return true }
        context.addReader(run, for: self)
        return false
    }
}

/// What clients answer for who want parts of what is fetched whole.
extension RequestHandler {
    /// Which part of an answer that is being received its client gets: all of it, if so much more
    /// than the part it wants may not be fetched for it.
    func affordableSelection(
        _ selection: Selection, _ waiting: PendingResponse, _ response: FetchedResponse,
        of run: ActiveFetch,
        _ view: FetchSnapshot
    ) -> Selection {
        let isKept = view.phase == .storing
        guard case .parts(let ranges) = selection, isChargeableForRest(waiting, view),
            !response.isFromDisk
        else { return selection }
        let wanted = ranges.reduce(0) { $0 + $1.count }
        let size = response.metadata.size
        // Several parts wait for the end.
        let isWhole = isKept && (ranges.count > 1 || isWholeWorthFetching(size, run, view))
        let fetched = isWhole ? size : ranges.reduce(0) { max($0, $1.last + 1) }
        // A peer may have had it: what was fetched for it is counted there.
        let unread = response.isFromPeer ? 0 : fetched - min(fetched, wanted)
        guard context.chargeUnread(unread, for: run.client) else {
            context.counters.add(.originRangesLimited)
            return .whole
        }
        if isKept { run.chargeToClient(continuesUnread: isWhole) }
        return selection
    }

    /// True if the whole of `size` bytes is fetched where only a part is wanted.
    private func isWholeWorthFetching(_ size: UInt64, _ run: ActiveFetch, _ view: FetchSnapshot)
        -> Bool
    {
        if RangeRequestHistory.Storability.storable(bytes: size).isSmall { return true }
        // Of a site that was decided before the origin was asked; of an image, whose header has to
        // be seen, its origin is never asked for a part.
        guard run.siteRequest.isImage else { return !view.isPart }
        let now = SystemClock.now()
        let isAgain =
            context.node.parts.withLock { $0.recordPartRequest(run.hash, now: now) } == .whole
        if isAgain { context.counters.add(.originRangesRepeated) }
        return isAgain
    }

    /// True if a client that wants a part may wait for the end of an answer whose length is not
    /// known, rather than get the whole as it comes.
    func mayWaitForEnd(
        _ waiting: PendingResponse, _ response: FetchedResponse, of run: ActiveFetch,
        _ view: FetchSnapshot
    ) -> Bool {
        guard waiting.facts.contains(.ranged), response.sizeBytes == nil, !response.isFromDisk,
            !response.isFromPeer, isChargeableForRest(waiting, view),
            !context.mayFetchUnread(for: run.client)
        else { return true }
        context.counters.add(.originRangesLimited)
        return false
    }

    /// Has the client answer for what it does not want of an entry that was fetched for it; false
    /// if it gets all of it in the stead of that.
    func chargeForRest(
        _ waiting: PendingResponse, _ run: ActiveFetch, _ view: FetchSnapshot, _ entry: MemoryEntry
    ) -> Bool {
        guard entry.status == 200, waiting.facts.contains(.ranged),
            isChargeableForRest(waiting, view),
            case .parts(let ranges) = select(
                waiting.request, waiting.facts, of: entry.metadata, RenderedHead(entry))
        else { return true }
        let wanted = ranges.reduce(0) { $0 + $1.count }
        let size = view.progress.isFromPeer ? wanted : entry.metadata.size
        if context.chargeUnread(size - min(size, wanted), for: run.client) { return true }
        context.counters.add(.originRangesLimited)
        return false
    }

    /// The request has caused the fetch, which asks an origin or a peer, and whose rest nobody has
    /// answered for yet.
    private func isChargeableForRest(_ waiting: PendingResponse, _ view: FetchSnapshot) -> Bool {
        waiting.isInitiator && !view.progress.isChargedToClient
            && (view.hasContactedOrigin || view.progress.isFromPeer)
    }
}
