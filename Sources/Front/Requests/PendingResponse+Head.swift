import Ground
import HTTPRules
import Platform
import Serving
import Store
import Telemetry

/// The head of a response, as soon as the fetch permits it.
extension PendingResponse {
    /// Sends the head of the response, or all of it, if the fetch has it; restarts or fails if the
    /// fetch cannot serve the request.
    ///
    /// - Returns: false if nothing remains to do until the response is woken.
    func sendHeadIfReady() -> Bool {
        // Without a fetch, the request waits for a turn of the loop.
        guard let run = fetch, let reader else { return false }
        let (step, view) = run.nextHeadStep(reader, on: context)
        switch step {
        case .restart(let alone):
            restart(alone: alone, view)
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
            context.fetches.addReader(self, of: run)
            return false
        case .loadedFromDisk(let entry):
            let isStale = entry.metadata.freshUntil <= SystemClock.now()
            response.cacheResult = isStale ? .stale : .disk
            serve(entry, handling: isStale ? .stale(.disk) : .hit(.disk))
            return false
        case .stored(let entry): return send(stored: entry, of: run, view)
        case .receiving(let received):
            return beginStreaming(
                (forwarding.isInitiator ? view.progress.requesterResponse : nil) ?? received,
                of: run, view)
        }
    }

    /// Leaves a fetch whose response does not suit this request, for another one.
    private func restart(alone: Bool, _ view: FetchSnapshot) {
        if view.wasPeerTransferLost { skipsPeers = true }
        leaveFetch()
        // After a failure, the mismatch of variants is not the reason.
        if !alone, view.phase != .failed, !view.isPart, !view.isUnusable {
            forwarding.reason = .varyMiss
        }
        enqueueFetch(
            alone: alone && !view.progress.isRequesterSpecific || query.isExclusive)
    }

    /// Serves a response that is complete as an entry; returns false if nothing remains to do until
    /// the response is woken.
    private func send(stored entry: MemoryEntry, of run: ActiveFetch, _ view: FetchSnapshot) -> Bool
    {
        let known = view.progress
        if let stoodIn = known.staleFallback {
            if let note = forwarding.stoodIn(stoodIn, entry.metadata, for: query) {
                serve(entry, handling: note)
            } else {
                fail(with: .notValidated)
            }
            return false
        }
        if forwarding.isInitiator,
            var own = known.requesterResponse ?? FetchedResponse(trailing: entry, known)
        {
            own.isKept = known.isStored
            return beginStreaming(own, of: run, view)
        }
        setDecision(known.cacheability, isKept: known.isStored)
        let isConfirmed = known.isValidated || known.staleEntry?.body === entry.body
        let note = forwarding.forwarded(
            known, status: isConfirmed ? 304 : entry.status, isStored: known.isStored, for: query)
        serve(
            entry, handling: note,
            appliesSelection: isConfirmed || charge(of: run, view).covers(entry, for: request))
        return false
    }

    /// Sends the head of a response whose body is being received; returns false if nothing remains
    /// to do until the response is woken, for example because the head requires the end of the
    /// body.
    private func beginStreaming(
        _ received: FetchedResponse, of run: ActiveFetch, _ view: FetchSnapshot
    ) -> Bool {
        let now = SystemClock.now()
        guard let note = forwarding.receiving(received, view.progress, for: query) else {
            fail(with: .notValidated)
            return false
        }
        if upload != nil { response.closesAfterResponse = true }
        setDecision(received.cacheability, isKept: received.isKept)
        if received.head.status == 101 {
            beginTunnel(received, note, now: now)
            return true
        }
        if received.isPassedThrough || received.head.status != 200 {
            return beginPassthrough(received, of: run, view, note, now: now)
        }
        // A response that has ended is not kept: otherwise the outcome would be its entry.
        let isKept = view.phase == .storing
        let charge = charge(of: run, view)
        let selection = charge.affordable(
            request.selection(
                facts, of: received.metadata, received.head, rangesMax: settings.rangesMax),
            of: received)
        switch selection {
        case .notModified:
            end { $0.sendNotModified(received.head, received.metadata, note, now: now) }
            return false
        case .preconditionFailed:
            fail(with: .preconditionFailed)
            return false
        case .whole, .parts, .unsatisfiable: break
        }
        let plan = DeliveryPlan.decide(
            charge.mayWaitForEnd(of: received) ? facts : facts.subtracting(.ranged),
            sizeBytes: received.sizeBytes, isKept: isKept, isHTTP10: request.isHTTP10)
        switch (plan, selection) {
        case (.afterCompletion, _):
            return waitForEnd(of: run)
        case (.parts, .parts(let ranges)) where ranges.count > 1 && isKept:
            return waitForEnd(of: run)
        case (.parts, .unsatisfiable):
            end { $0.sendRangeNotSatisfiable(size: received.metadata.size) }
            return false
        case (.parts, .parts(let ranges)) where ranges.count == 1:
            response.sendPartialHead(ranges[0], received.head, received.metadata, note, now: now)
            stage = .streaming(
                .init(from: ranges[0].first, end: ranges[0].last + 1, isChunked: false))
        case (.parts(let size), _): sendWholeHead(received, .length(size), note, now: now)
        case (.whole(let framing), _): sendWholeHead(received, framing, note, now: now)
        }
        // The end may begin another request.
        let hasBody = !response.isHeadRequest
        if !hasBody { finish() }
        return hasBody
    }

    /// Sends the head of a response that is passed on without range selection or conditions;
    /// returns false if nothing remains to do until the response is woken.
    private func beginPassthrough(
        _ received: FetchedResponse, of run: ActiveFetch, _ view: FetchSnapshot,
        _ note: CacheHandling, now: Instant
    ) -> Bool {
        let isHead = response.isHeadRequest
        let hasBody = !isHead && received.head.status != 204 && received.head.status != 304
        let plan = DeliveryPlan.decide(
            RequestTraits(isHead: facts.isHead, isConditional: false, isRanged: false),
            sizeBytes: received.sizeBytes, isKept: view.phase == .storing,
            isHTTP10: request.isHTTP10)
        switch plan {
        case .afterCompletion: return waitForEnd(of: run)
        case .parts(let size): sendWholeHead(received, .length(size), note, now: now)
        case .whole(let framing):
            sendWholeHead(received, hasBody || isHead ? framing : .none, note, now: now)
        }
        if !hasBody { finish() }
        return hasBody
    }

    /// Adds the evaluation of the origin's response to the head, if the request has asked for it.
    private func setDecision(_ evaluation: Cacheability?, isKept: Bool) {
        guard response.includesDecision, let evaluation else { return }
        response.setDecision(DecisionTrace(of: query, evaluation, isKept: isKept))
    }

    /// Returns the charge for bytes of the fetch that the request does not ask for.
    private func charge(of run: ActiveFetch, _ view: FetchSnapshot) -> RangeCharge {
        RangeCharge(facts, isInitiator: forwarding.isInitiator, run, view, on: context)
    }

    /// Sends the head of a complete response and begins to stream its body.
    func sendWholeHead(
        _ received: FetchedResponse, _ framing: ResponseFraming, _ note: CacheHandling,
        now: Instant
    ) {
        response.sendWholeHead(received, framing, note, now: now)
        stage = .streaming(BodyTransfer(whole: framing))
    }

    /// Serves an entry and leaves the fetch.
    ///
    /// - Parameters:
    ///   - entry: the entry to serve.
    ///   - handling: the handling to report in Cache-Status.
    ///   - appliesSelection: true to evaluate ranges and conditions; false to send the complete
    ///     response.
    func serve(_ entry: MemoryEntry, handling: CacheHandling, appliesSelection: Bool = true) {
        let (request, facts, now) = (request, facts, SystemClock.now())
        end {
            if appliesSelection {
                $0.send(entry, to: request, facts, handling: handling, now: now)
            } else {
                $0.sendWhole(entry, handling: handling, isHead: facts.isHead, now: now)
            }
        }
    }

    /// Leaves the fetch, sends a response that no longer requires it, and resumes waiting requests.
    private func end(_ send: (ResponseSender) -> Void) {
        detach()
        send(response)
        response.resumeRequests()
    }

    /// Registers for the end of the body; returns true if it is complete or no longer kept, so that
    /// the response must be planned again.
    private func waitForEnd(of run: ActiveFetch) -> Bool {
        guard run.awaitCompletion(on: context) else { return true }
        context.fetches.addReader(self, of: run)
        return false
    }
}
