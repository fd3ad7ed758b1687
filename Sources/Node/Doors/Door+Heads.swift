import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

/// What becomes of a request that waits, before the head of its answer is sent.
extension Door {
    /// False if there is nothing to do before the door is woken.
    func proceedToHead(_ waiting: Waiting) -> Bool {
        // Without a fetch it waits for a turn of the loop.
        guard let run = waiting.run, let reader = waiting.reader else { return false }
        let (step, view) = run.look(reader, on: hall)
        switch step {
        case .startOver(let alone):
            if view.isLostByPeer { waiting.skipsPeers = true }
            dropRun(waiting)
            // After a failure it is not the variant that was wrong.
            if !alone, view.phase != .failed, !view.isPart, !view.isVoid {
                waiting.reason = .varyMiss
            }
            enter(waiting, alone: alone && !view.known.isOwn || waiting.query?.isAlone == true)
            return false
        case .wait, .fail, .breakOff, .take, .finish: break
        }
        switch view.known.outcome {
        case .refused(let problem):
            fail(with: problem)
            return false
        case _ where step == .fail || step == .breakOff:
            breakOff()
            return false
        case .open:
            hall.await(run, for: self)
            return false
        case .found(let resident):
            part = .disk
            let isStale = resident.facts.freshUntil <= SystemClock.now()
            if isStale { part = .stale }
            serve(waiting, from: resident, note: isStale ? .stale(.disk) : .hit(.disk))
            return false
        case .stored(let resident): return proceed(waiting, run, view, stored: resident)
        case .answering(let answer):
            return begin(waiting, (waiting.isFirst ? view.known.own : nil) ?? answer, of: run, view)
        }
    }

    /// The whole of the answer is an entry.
    private func proceed(
        _ waiting: Waiting, _ run: FillRun, _ view: FillView, stored resident: Resident
    ) -> Bool {
        let known = view.known
        if let stoodIn = known.stoodIn {
            if let note = note(of: stoodIn, by: resident.facts, to: waiting) {
                serve(waiting, from: resident, note: note)
            } else {
                fail(with: .notValidated)
            }
            return false
        }
        noteStale(waiting, known)
        if waiting.isFirst, var own = known.own ?? trailed(known, resident) {
            own.isKept = known.isStored
            return begin(waiting, own, of: run, view)
        }
        if let query = waiting.query, let examination = known.examination {
            tellDecision(of: query, examination, isKept: known.isStored)
        }
        let isConfirmed = known.isValidated || known.stale?.body === resident.body
        let note = waiting.note(
            status: isConfirmed ? 304 : resident.status, isStored: known.isStored,
            isFromPeer: known.isFromPeer)
        noteSource(of: note)
        serve(
            waiting, from: resident, note: note,
            isCut: isConfirmed || paysForRest(waiting, run, view, resident))
        return false
    }

    /// What is said of a stale answer with these facts that is given in the stead of the origin's;
    /// nil if the request does not take it.
    private func note(
        of stoodIn: FillView.StoodIn, by facts: EntryFacts, to waiting: Waiting
    ) -> CacheNote? {
        guard waiting.query?.standsIn(facts, now: SystemClock.now()) != false else { return nil }
        part = .stale
        return .stoodIn(waiting.reason, status: stoodIn.status)
    }

    /// Sends the head of an answer whose body is still being received; false if that has to wait
    /// for its end.
    private func begin(
        _ waiting: Waiting, _ answer: FillAnswer, of run: FillRun, _ view: FillView
    ) -> Bool {
        let now = SystemClock.now()
        let note: CacheNote
        if let stoodIn = view.known.stoodIn {
            guard let said = self.note(of: stoodIn, by: answer.facts, to: waiting) else {
                fail(with: .notValidated)
                return false
            }
            note = said
        } else if answer.isFromDisk {
            part = .disk
            note = .hit(.disk)
        } else {
            noteStale(waiting, view.known)
            note = waiting.note(
                status: answer.head.status, isStored: answer.isKept,
                isFromPeer: view.known.isFromPeer)
            noteSource(of: note)
        }
        if upload != nil { closesAfterAnswer = true }
        if let query = waiting.query, let examination = answer.examination {
            tellDecision(of: query, examination, isKept: answer.isKept)
        }
        if answer.head.status == 101 {
            beginSwitched(waiting, answer, note, now: now)
            return true
        }
        if answer.isVerbatim || answer.head.status != 200 {
            return beginVerbatim(waiting, answer, of: run, view, note, now: now)
        }
        // Not one that has ended: it made no entry, or the outcome would be that.
        let isKept = view.phase == .storing
        let selection = affordable(
            select(waiting.request, waiting.facts, of: answer.facts, answer.head), waiting,
            answer, of: run, view)
        switch selection {
        case .notModified:
            end(waiting) { sendNotModified(answer.head, answer.facts, note, now: now) }
            return false
        case .preconditionFailed:
            fail(with: .preconditionFailed)
            return false
        case .whole, .parts, .unsatisfiable: break
        }
        let plan = DeliveryPlan.decide(
            mayWait(waiting, answer, of: run, view)
                ? waiting.facts : waiting.facts.subtracting(.ranged),
            sizeBytes: answer.sizeBytes, isKept: isKept, isHTTP10: waiting.request.isHTTP10)
        switch (plan, selection) {
        case (.whenWhole, _):
            return waitForEnd(run)
        case (.parts, .parts) where isSeveral(selection) && isKept:
            return waitForEnd(run)
        case (.parts, .unsatisfiable):
            end(waiting) { answerUnsatisfiable(size: answer.facts.size) }
            return false
        case (.parts, .parts(let ranges)) where ranges.count == 1:
            sendPartHead(ranges[0], answer.head, answer.facts, note, now: now)
            waiting.stage = .transfer(
                .init(from: ranges[0].first, end: ranges[0].last + 1, isChunked: false))
        case (.parts(let size), _):
            sendWhole(answer, .length(size), waiting, note, now: now)
        case (.whole(let framing), _):
            sendWhole(answer, framing, waiting, note, now: now)
        }
        if isHeadRequest { endWaiting(waiting) }
        return !isHeadRequest
    }

    /// An answer that is whole and stored, for the one who caused the fetch, if fields came behind
    /// it: those are not stored.
    private func trailed(_ known: FillView.Known, _ resident: Resident) -> FillAnswer? {
        guard !known.trailers.isEmpty else { return nil }
        return FillAnswer(
            facts: resident.facts, head: RenderedHead(resident), sizeBytes: nil, isKept: true)
    }

    /// Sends the head of an answer of which nothing is chosen here.
    private func beginVerbatim(
        _ waiting: Waiting, _ answer: FillAnswer, of run: FillRun, _ view: FillView,
        _ note: CacheNote, now: Instant
    ) -> Bool {
        let hasBody = !isHeadRequest && answer.head.status != 204 && answer.head.status != 304
        let plan = DeliveryPlan.decide(
            RequestFacts(isHead: waiting.facts.isHead, isConditional: false, isRanged: false),
            sizeBytes: answer.sizeBytes, isKept: view.phase == .storing,
            isHTTP10: waiting.request.isHTTP10)
        switch plan {
        case .whenWhole: return waitForEnd(run)
        case .parts(let size): sendWhole(answer, .length(size), waiting, note, now: now)
        case .whole(let framing):
            sendWhole(
                answer, hasBody || isHeadRequest ? framing : .none, waiting, note, now: now)
        }
        if !hasBody { endWaiting(waiting) }
        return hasBody
    }

    /// What another node had is no miss of the cluster's.
    private func noteSource(of note: CacheNote) {
        if case .forwarded(_, _, _, _, isFromPeer: true) = note, part == .miss { part = .peer }
    }

    /// The disk had what the origin was then asked about.
    private func noteStale(_ waiting: Waiting, _ known: FillView.Known) {
        guard known.stale != nil else { return }
        if waiting.isForImage || waiting.reason == .uriMiss { waiting.reason = .stale }
        if !waiting.isCollapsed { part = .revalidated }
    }

    private func isSeveral(_ selection: Selection) -> Bool {
        if case .parts(let ranges) = selection { return ranges.count > 1 }
        return false
    }

    private func sendWhole(
        _ answer: FillAnswer, _ framing: Framing, _ waiting: Waiting, _ note: CacheNote,
        now: Instant
    ) {
        sendWholeHead(answer, framing, note, now: now)
        var end: UInt64?
        if case .length(let bytes) = framing { end = bytes }
        waiting.stage = .transfer(.init(from: 0, end: end, isChunked: framing == .chunked))
    }

    /// Gives an entry to a request that waited for it: all of it, whatever is asked for, unless it
    /// `isCut`.
    func serve(_ waiting: Waiting, from resident: Resident, note: CacheNote, isCut: Bool = true) {
        dropRun(waiting)
        self.waiting = nil
        let isHead = waiting.facts.contains(.head)
        if isCut, waiting.facts.isSelective, resident.status == 200 {
            let selection = select(
                waiting.request, waiting.facts, of: resident.facts, RenderedHead(resident))
            send(selection, of: resident, note: note, isHead: isHead, now: SystemClock.now())
        } else {
            sendWhole(resident, note: note, isHead: isHead, now: SystemClock.now())
        }
        goOn()
    }

    /// Ends a wait with an answer that needs nothing of the fetch any more.
    private func end(_ waiting: Waiting, _ send: () -> Void) {
        dropRun(waiting)
        self.waiting = nil
        send()
        goOn()
    }

    /// True if the fetch has ended, or is no longer kept, so that the answer has to be planned
    /// anew.
    func waitForEnd(_ run: FillRun) -> Bool {
        guard run.awaitsEnd(on: hall) else { return true }
        hall.await(run, for: self)
        return false
    }
}
