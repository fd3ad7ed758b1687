import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

extension Door {
    /// Begins an answer that memory cannot give: joins the fetch under way for this key, or causes
    /// one.
    func wait(
        _ bytes: Span<UInt8>, key: [UInt8], hash: UInt64, wanted: Negotiation,
        facts: RequestFacts, stale: Resident?, _ glance: DiskGlance
    ) {
        phase = .answering
        deadline = SystemClock.now() + settings.waitTimeout
        let waiting = Waiting(
            PendingRequest(copying: parser, bytes, headRange), key: key, hash: hash, wanted: wanted,
            facts: facts, reason: stale == nil ? .uriMiss : .stale)
        switch glance {
        case .off, .found: waiting.name = hall.node.disk == nil ? nil : EntryName(ofKey: key)
        case .absent(let name): waiting.name = name
        case .later(let name):
            waiting.name = name
            waiting.asksDisk = true
        }
        self.waiting = waiting
        enter(waiting, alone: false)
    }

    private func enter(_ waiting: Waiting, alone: Bool) {
        let node = hall.node
        guard node.waiterCount < settings.waitersMax else {
            return fail(with: .overloaded(.waiters))
        }
        var stale: Resident?
        let begin = { [hall] in
            FillRun(
                key: waiting.key, hash: waiting.hash, negotiation: waiting.wanted, stale: stale,
                stamp: node.disk?.stamp, hall: hall)
        }
        let lookUp = { () -> Resident? in
            let key = waiting.key
            let found = node.store.find(
                key.span, 0..<key.count, hash: waiting.hash, wanted: waiting.wanted)
            guard let found else { return nil }
            guard judge(found.facts, for: waiting.facts, now: SystemClock.now()) == .revalidate
            else { return found }
            stale = found
            return nil
        }
        let admission: FillTable.Admission
        if alone {
            let (run, reader) = node.fills.beginAlone(waiting.wanted, begin: begin)
            admission = .begun(run, reader)
        } else {
            admission = node.fills.admit(
                key: waiting.key, hash: waiting.hash, wanted: waiting.wanted, lookUp: lookUp,
                begin: begin)
        }
        switch admission {
        case .stored(let resident):
            part = .hit
            serve(waiting, from: resident, note: .hit(.memory))
        case .joined(let run, let reader):
            part = .collapsed
            waiting.isCollapsed = true
            attach(waiting, to: run, as: reader)
            proceed()
        case .begun(let run, let reader):
            part = stale == nil ? .miss : .stale
            waiting.reason = stale == nil ? waiting.reason : .stale
            waiting.isCollapsed = false
            attach(waiting, to: run, as: reader)
            // What may not be shared is not stored either.
            let asksDisk = waiting.asksDisk && !alone && stale == nil
            // Who has to begin anew may find there what others have left.
            waiting.asksDisk = true
            hall.start(run, name: waiting.name, asksDisk: asksDisk)
            proceed()
        }
    }

    private func attach(_ waiting: Waiting, to run: FillRun, as reader: Fill.ReaderID) {
        waiting.run = run
        waiting.reader = reader
        hall.node.waiterJoined()
    }

    /// Goes on with the answer in progress as far as fetch and socket allow.
    func proceed() {
        while let waiting, phase == .answering, queuedBytes == 0 {
            let goesOn =
                switch waiting.stage {
                case .head: proceedToHead(waiting)
                case .transfer(let transfer): proceed(waiting, transfer)
                case .segments(let resident, let left): proceed(waiting, resident, left)
                }
            guard goesOn else { break }
        }
        flush()
    }

    /// The time came after which a request waits no more for the head of its answer; others go on
    /// waiting for theirs.
    func waitedLongEnough() {
        guard let waiting, case .head = waiting.stage, let run = waiting.run,
            case .open = run.outcome
        else { return }
        fail(with: .overloaded(.time))
    }

    // MARK: Before the head

    /// False if there is nothing to do before the door is woken.
    private func proceedToHead(_ waiting: Waiting) -> Bool {
        guard let run = waiting.run, let reader = waiting.reader else {
            preconditionFailure("waits for nothing")
        }
        let step = run.step(reader, limit: 0, on: hall, slices: &slices)
        switch step {
        case .startOver(let alone):
            dropRun(waiting)
            // After a failure it is not the variant that was wrong.
            if !alone, run.phase != .failed { waiting.reason = .varyMiss }
            enter(waiting, alone: alone)
            return false
        case .fail, .breakOff:
            if case .refused(let problem) = run.outcome {
                fail(with: problem)
            } else {
                breakOff()
            }
            return false
        case .wait, .take, .finish: break
        }
        switch run.outcome {
        case .open:
            hall.await(run, for: self)
            return false
        case .refused(let problem):
            fail(with: problem)
            return false
        case .found(let resident):
            part = .disk
            serve(waiting, from: resident, note: .hit(.disk))
            return false
        case .stored(let resident):
            noteStale(waiting, run)
            let status: UInt16 = run.stale?.body === resident.body ? 304 : 200
            serve(
                waiting, from: resident,
                note: waiting.note(status: status, isStored: run.isStored))
            return false
        case .answering(let answer):
            return begin(waiting, answer, of: run)
        }
    }

    /// Sends the head of an answer whose body is still being received; false if that has to wait
    /// for its end.
    private func begin(_ waiting: Waiting, _ answer: FillAnswer, of run: FillRun) -> Bool {
        let now = SystemClock.now()
        let note: CacheNote
        if answer.isFromDisk {
            part = .disk
            note = .hit(.disk)
        } else {
            noteStale(waiting, run)
            note = waiting.note(status: 200, isStored: answer.isKept)
        }
        let selection = select(waiting.request, waiting.facts, of: answer.facts, answer.head)
        switch selection {
        case .notModified:
            end(waiting) { sendNotModified(answer.head, answer.facts, note, now: now) }
            return false
        case .preconditionFailed:
            fail(with: .preconditionFailed)
            return false
        case .whole, .parts, .unsatisfiable: break
        }
        // Not one that has ended: it made no entry, or the outcome would be that.
        let isKept = run.phase == .storing
        let plan = DeliveryPlan.decide(
            waiting.facts, sizeBytes: answer.sizeBytes, isKept: isKept,
            isHTTP10: waiting.request.isHTTP10)
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

    /// The disk had what the origin was then asked about.
    private func noteStale(_ waiting: Waiting, _ run: FillRun) {
        guard run.stale != nil else { return }
        waiting.reason = .stale
        if !waiting.isCollapsed { part = .stale }
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

    /// Gives an entry to a request that waited for it.
    private func serve(_ waiting: Waiting, from resident: Resident, note: CacheNote) {
        dropRun(waiting)
        self.waiting = nil
        let selection = select(
            waiting.request, waiting.facts, of: resident.facts, RenderedHead(resident))
        send(
            selection, of: resident, note: note, isHead: waiting.facts.contains(.head),
            now: SystemClock.now())
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
    private func waitForEnd(_ run: FillRun) -> Bool {
        guard run.awaitsEnd(on: hall) else { return true }
        hall.await(run, for: self)
        return false
    }

    // MARK: The body, as it is received

    /// False if there is nothing to do before the door is woken.
    private func proceed(_ waiting: Waiting, _ transfer: Waiting.Transfer) -> Bool {
        guard let run = waiting.run, let reader = waiting.reader else {
            preconditionFailure("a transfer from nothing")
        }
        var transfer = transfer
        if transfer.lentBytes > 0 {
            run.advance(reader, by: transfer.lentBytes)
            transfer.position += UInt64(transfer.lentBytes)
            transfer.lentBytes = 0
            waiting.stage = .transfer(transfer)
        }
        if let end = transfer.end, transfer.position >= end {
            endTransfer(waiting, transfer)
            return false
        }
        slices.removeAll(keepingCapacity: true)
        switch run.step(reader, limit: settings.transferBytesMax, on: hall, slices: &slices) {
        case .wait:
            hall.await(run, for: self)
            return false
        case .take(_, let count):
            transfer.lentBytes = count
            waiting.stage = .transfer(transfer)
            sendSlices(transfer, count)
            // Bytes outside of the wanted part were skipped: nothing will come from the socket.
            return queuedBytes == 0
        case .finish:
            endTransfer(waiting, transfer)
            return false
        case .startOver, .breakOff, .fail:
            breakOff()
            return false
        }
    }

    /// Writes those of the bytes in `slices` that the client wants.
    private func sendSlices(_ transfer: Waiting.Transfer, _ count: Int) {
        let first = max(transfer.from, transfer.position)
        let last = min(transfer.end ?? .max, transfer.position + UInt64(count))
        guard first < last else { return slices.removeAll(keepingCapacity: true) }
        answeredBytes += last - first
        if transfer.isChunked { writeText(String(last - first, radix: 16) + "\r\n") }
        var offset = transfer.position
        for slice in slices {
            let next = offset + UInt64(slice.readableBytes)
            let from = max(first, offset)
            let to = min(last, next)
            if from < to,
                let part = slice.getSlice(
                    at: slice.readerIndex + Int(from - offset), length: Int(to - from))
            {
                write(part)
            }
            offset = next
        }
        slices.removeAll(keepingCapacity: true)
        if transfer.isChunked { writeText("\r\n") }
    }

    private func endTransfer(_ waiting: Waiting, _ transfer: Waiting.Transfer) {
        if let end = transfer.end, transfer.position < end {
            // The origin's length and the body's disagree; the client must not take it for whole.
            return breakOff()
        }
        if transfer.isChunked { writeText("0\r\n\r\n") }
        endWaiting(waiting)
    }

    // MARK: The body, from an entry

    /// Gives `segments`, the bodies among them from `resident`, as fast as the client takes them.
    func stream(_ resident: Resident, _ segments: [Segment]) {
        phase = .answering
        let waiting = self.waiting ?? Waiting()
        waiting.stage = .segments(resident, segments)
        self.waiting = waiting
    }

    /// Writes until the output is congested; false when the answer is complete.
    private func proceed(_ waiting: Waiting, _ resident: Resident, _ left: [Segment]) -> Bool {
        guard let first = left.first else {
            endWaiting(waiting)
            return false
        }
        lent.append(resident)
        switch first {
        case .text(let text):
            write(text)
            waiting.stage = .segments(resident, Array(left.dropFirst()))
        case .body(let offset, let count):
            let taken = min(count, UInt64(settings.transferBytesMax))
            slices.removeAll(keepingCapacity: true)
            resident.body.appendSlices(from: offset, count: Int(taken), to: &slices)
            for slice in slices { write(slice) }
            slices.removeAll(keepingCapacity: true)
            answeredBytes += taken
            let rest: [Segment] =
                taken < count ? [.body(from: offset + taken, count: count - taken)] : []
            waiting.stage = .segments(resident, rest + left.dropFirst())
        }
        return true
    }

    // MARK: The end

    private func endWaiting(_ waiting: Waiting) {
        dropRun(waiting)
        self.waiting = nil
        finishAnswer()
        goOn()
    }

    /// After an answer that had to wait: what the client has sent meanwhile is looked at.
    func goOn() {
        guard phase == .idle else { return }
        deadline = SystemClock.now() + settings.idleTimeout
        consumeInput()
        resumeReading()
    }

    func dropRun(_ waiting: Waiting) {
        guard let run = waiting.run else { return }
        waiting.run = nil
        hall.node.waiterLeft()
        if let reader = waiting.reader { run.leave(reader) }
    }

    private func writeText(_ text: String) {
        write(ByteBuffer(string: text))
    }
}
