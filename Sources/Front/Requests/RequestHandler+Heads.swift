import Platform
import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Synchronization
import Telemetry
import Wire

/// Requests that wait for a fetch, until the head of their response is sent.
extension RequestHandler {
    /// Sends the head of the response if the fetch has it.
    ///
    /// - Returns: false if nothing remains to do until the handler is woken.
    func sendHeadIfReady(_ waiting: PendingResponse) -> Bool {
        // Without a fetch, the request waits for a turn of the loop.
        guard let run = waiting.fetch, let reader = waiting.reader else { return false }
        let (step, view) = run.nextHeadStep(reader, on: context)
        switch step {
        case .restart(let alone):
            if view.wasPeerTransferLost { waiting.skipsPeers = true }
            leaveFetch(waiting)
            // After a failure, the mismatch of variants is not the reason.
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

    /// Serves a response that is complete as an entry.
    ///
    /// - Returns: false if nothing remains to do until the handler is woken.
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

    /// Returns the handling for a stale response with these facts that stands in for the origin's;
    /// `nil` if the request does not accept it.
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

    /// Returns how the cache took part in a response that is still being received.
    ///
    /// `nil` for a stale one that the request forbids.
    private func handling(
        of response: FetchedResponse, _ progress: FetchSnapshot.Progress,
        for waiting: PendingResponse
    ) -> CacheHandling? {
        if let fallback = progress.staleFallback {
            return staleIfErrorHandling(of: fallback, by: response.metadata, to: waiting)
        }
        if response.isFromDisk {
            cacheResult = .disk
            return .hit(.disk)
        }
        recordStale(waiting, progress)
        let handling = waiting.forwardedHandling(
            status: response.head.status, isStored: response.isKept,
            isFromPeer: progress.isFromPeer)
        recordSource(of: handling)
        return handling
    }

    /// Sends the head of a response whose body is being received.
    ///
    /// - Returns: false if nothing remains to do until the handler is woken, for example because
    ///   the head requires the end of the body.
    private func beginStreaming(
        _ waiting: PendingResponse, _ response: FetchedResponse, of run: ActiveFetch,
        _ view: FetchSnapshot
    ) -> Bool {
        let now = SystemClock.now()
        guard let note = handling(of: response, view.progress, for: waiting) else {
            fail(with: .notValidated)
            return false
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
        // A response that has ended is not kept: otherwise the outcome would be its entry.
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

    /// Returns the complete stored response with trailers for the requester that caused the fetch,
    /// because trailers are not stored; `nil` if there are none.
    private func responseWithTrailers(_ known: FetchSnapshot.Progress, _ entry: MemoryEntry)
        -> FetchedResponse?
    {
        guard !known.trailers.isEmpty else { return nil }
        return FetchedResponse(
            metadata: entry.metadata, head: RenderedHead(entry), sizeBytes: nil, isKept: true)
    }

    /// Sends the head of a response that is passed on without range selection or conditions.
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

    /// Records the peer as source: a response that another node had is no miss of the cluster.
    private func recordSource(of note: CacheHandling) {
        if case .forwarded(_, _, _, _, isFromPeer: true) = note, cacheResult == .miss {
            cacheResult = .peer
        }
    }

    /// Records that a stored response was revalidated.
    private func recordStale(_ waiting: PendingResponse, _ known: FetchSnapshot.Progress) {
        guard known.staleEntry != nil else { return }
        if waiting.isForImage || waiting.reason == .uriMiss { waiting.reason = .stale }
        if !waiting.isCollapsed { cacheResult = .revalidated }
    }

    /// Returns true for a selection of several ranges.
    private func isMultipart(_ selection: Selection) -> Bool {
        if case .parts(let ranges) = selection { return ranges.count > 1 }
        return false
    }

    /// Sends the head of a complete response and begins to stream its body.
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

    /// Serves an entry to a waiting request.
    ///
    /// - Parameters:
    ///   - waiting: the pending response, which leaves its fetch.
    ///   - entry: the entry to serve.
    ///   - handling: the handling to report in Cache-Status.
    ///   - appliesSelection: true to evaluate ranges and conditions; false to send the complete
    ///     response.
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

    /// Ends a wait with a response that no longer requires the fetch.
    private func end(_ waiting: PendingResponse, _ send: () -> Void) {
        leaveFetch(waiting)
        self.pendingResponse = nil
        send()
        resumeRequests()
    }

    /// Registers for the end of the body; returns true if it is complete or no longer kept, so that
    /// the response must be planned again.
    func waitForEnd(_ run: ActiveFetch) -> Bool {
        guard run.awaitCompletion(on: context) else { return true }
        context.addReader(run, for: self)
        return false
    }
}

/// Charges of clients for range requests whose complete response is fetched.
extension RequestHandler {
    /// Returns the selection to send: the complete response if the client's allowance does not
    /// cover the excess over the requested part.
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
        // Several ranges are sent after the end of the body.
        let isWhole = isKept && (ranges.count > 1 || isWholeWorthFetching(size, run, view))
        let fetched = isWhole ? size : ranges.reduce(0) { max($0, $1.last + 1) }
        // Bytes that a peer has fetched are charged there.
        let unread = response.isFromPeer ? 0 : fetched - min(fetched, wanted)
        guard context.chargeUnread(unread, for: run.client) else {
            context.counters.add(.originRangesLimited)
            return .whole
        }
        if isKept { run.chargeToClient(continuesUnread: isWhole) }
        return selection
    }

    /// Returns true if the complete `size` bytes are fetched although only a part is requested.
    private func isWholeWorthFetching(_ size: UInt64, _ run: ActiveFetch, _ view: FetchSnapshot)
        -> Bool
    {
        if RangeRequestHistory.Storability.storable(bytes: size).isSmall { return true }
        // For a site this was decided before the origin was contacted. The origin of an image is
        // never asked for a part, because the image's header must be inspected.
        guard run.siteRequest.isImage else { return !view.isPart }
        let now = SystemClock.now()
        let isAgain =
            context.node.parts.withLock { $0.recordPartRequest(run.hash, now: now) } == .whole
        if isAgain { context.counters.add(.originRangesRepeated) }
        return isAgain
    }

    /// Returns true if a range request may wait for the end of a body of unknown length; otherwise
    /// it receives the complete body as it arrives.
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

    /// Charges the client for the bytes of an entry that were fetched for it and that it did not
    /// request; returns false if its allowance is exhausted, so that it is sent everything instead.
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

    /// Returns true if the request caused a fetch from an origin or a peer whose rest was not
    /// charged yet.
    private func isChargeableForRest(_ waiting: PendingResponse, _ view: FetchSnapshot) -> Bool {
        waiting.isInitiator && !view.progress.isChargedToClient
            && (view.hasContactedOrigin || view.progress.isFromPeer)
    }
}
