import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Wire

extension Door {
    /// Answers from what memory has for a request that takes a second look, or waits.
    func answer(
        _ query: SiteRequest, _ pending: PendingRequest, _ facts: RequestFacts,
        _ finding: SiteFinding, now: Instant
    ) {
        switch finding {
        case .answer(let resident, .fresh):
            part = .hit
            give(resident, pending, facts, note: .hit(.memory), now: now)
        case .answer(let resident, .stale(let use)):
            part = .stale
            if use == .whileRevalidate {
                hall.revalidate(
                    query, resident, cause: cause(pending), client: shareHolder, now: now)
            }
            give(resident, pending, facts, note: .stale(.memory), now: now)
        case .answer(let resident, .validate(let reason)):
            wait(query, pending, facts, .init(reason), stale: resident, now: now)
        case .answer(_, .unusable):
            wait(query, pending, facts, .request, alone: true, now: now)
        case .passes:
            guard !query.control.isOnlyIfCached else { return answerProblem(.notCached) }
            // Asked for whole, it is stored as soon as it may be.
            guard facts.isSelective || query.isAlone else {
                return wait(query, pending, facts, .miss, alone: true, now: now)
            }
            pass(query.passing, pending, facts, .miss, now: now)
        case .absent(let expected):
            let record = hall.recordToSend(query, facts, outlet, now)
            if let record { return give(record, now: now) }
            let glance = hall.glanceAtDisk(query)
            if case .found(let resident) = glance {
                part = .disk
                return give(resident, pending, facts, note: .hit(.disk), now: now)
            }
            wait(query, pending, facts, expected.isEmpty ? .uriMiss : .varyMiss, glance, now: now)
        }
    }

    /// Gives an entry, or the part of it that is asked for.
    func give(
        _ resident: Resident, _ pending: PendingRequest, _ facts: RequestFacts, note: CacheNote,
        now: Instant
    ) {
        hall.touch(resident, now: now)
        guard facts.isSelective, resident.status == 200 else {
            return sendWhole(resident, note: note, isHead: facts.isHead, now: now)
        }
        let selection = select(pending, facts, of: resident.facts, RenderedHead(resident))
        send(selection, of: resident, note: note, isHead: facts.isHead, now: now)
    }

    /// Waits for the disk, for other nodes, or for the origin; `glance` is what is known of the
    /// disk.
    func wait(
        _ query: SiteRequest, _ pending: PendingRequest, _ facts: RequestFacts,
        _ reason: CacheNote.Reason, stale: Resident? = nil, alone: Bool = false,
        _ glance: DiskGlance? = nil, now: Instant
    ) {
        let asksDisk = hall.node.disk != nil && stale == nil && !alone && glance?.isLater != false
        if query.control.isOnlyIfCached, !asksDisk { return answerProblem(.notCached) }
        // An answer to HEAD is not stored, nor is what the client forbids to be; of an image the
        // whole is asked for.
        if !query.isImage, !asksDisk, facts.isHead || query.control.isNoStore {
            return pass(
                query.passing, pending, facts, query.control.isNoStore ? .request : reason,
                now: now)
        }
        let waiting = wait(for: query, pending, facts, reason, now: now)
        waiting.name =
            hall.node.disk == nil ? nil : glance?.name ?? EntryName(ofKey: query.key)
        waiting.asksDisk = asksDisk
        enter(waiting, alone: alone || query.isAlone)
    }

    func wait(
        for query: SiteRequest, _ pending: PendingRequest, _ facts: RequestFacts,
        _ reason: CacheNote.Reason, now: Instant
    ) -> Waiting {
        isAnswering = true
        answeredKey = query.key
        deadline = now + settings.waitTimeout
        let waiting = Waiting(pending, query, facts: facts, reason: reason)
        self.waiting = waiting
        return waiting
    }

    /// Joins or causes the fetch for `waiting`, as soon as the loop has time for it.
    func enter(_ waiting: Waiting, alone: Bool) {
        guard hall.hasTurn(waiting, of: shareHolder) else { return waiting.inLine = (self, alone) }
        begin(waiting, alone: alone)
    }

    /// The same, now: it has its turn.
    func begin(_ waiting: Waiting, alone: Bool) {
        guard let query = waiting.query else { return }
        let node = hall.node
        guard node.waiterCount < settings.waitersMax else {
            return fail(with: .overloaded(.waiters))
        }
        var (stale, expected): (Resident?, FieldNames) = (nil, FieldNames())
        var note = CacheNote.hit(.memory)
        var wish = Lookup.Wish()
        wish.isAlone = alone
        wish.skipsPeers = waiting.skipsPeers
        func begin() -> FillRun {
            FillRun(
                query, stale: stale, on: hall, cause: cause(waiting.request), client: shareHolder,
                expected: expected, wish: wish)
        }
        func lookUp() -> Resident? {
            switch query.find(in: node.store, now: SystemClock.now()) {
            case .answer(let found, .fresh): return found
            case .answer(let found, .stale):
                note = .stale(.memory)
                return found
            case .answer(_, .unusable): break
            // Said since this request came: nobody is to wait for it.
            case .passes: wish.isAlone = true
            case .answer(let found, _):
                stale = found
                expected = query.nominated(of: found)
            case .absent(let names): expected = names
            }
            return nil
        }
        let admission: FillTable.Admission
        if alone {
            // What is to be freshened, or to stand in for an origin that fails.
            if query.mode == .whole, lookUp() != nil { stale = nil }
            let (run, reader) = node.fills.beginAlone(query, begin: begin)
            admission = .begun(run, reader)
        } else {
            admission = node.fills.admit(query, lookUp: lookUp, begin: begin)
        }
        switch admission {
        case .stored(let resident):
            part = note == .hit(.memory) ? .hit : .stale
            serve(waiting, from: resident, note: note)
        case .joined(let run, let reader):
            part = .collapsed
            waiting.join()
            if query.cameThroughNode {
                deadline = min(deadline, SystemClock.now() + NodeSettings.joinedWaitTimeout)
            }
            attach(waiting, to: run, as: reader)
            proceed()
        case .begun(let run, let reader):
            part = stale == nil ? .miss : .revalidated
            waiting.isFirst = true
            if query.mode == .verbatim { part = .passed }
            if stale != nil, query.isImage || waiting.reason == .uriMiss { waiting.reason = .stale }
            waiting.isCollapsed = false
            attach(waiting, to: run, as: reader)
            // What may not be shared is not stored; others may not wait with a site's request.
            let asksDisk = waiting.asksDisk && (!alone || !query.isImage) && stale == nil
            // Who has to begin anew may find there what others have left.
            waiting.asksDisk = query.isImage
            let driver = hall.start(run, name: waiting.name, asksDisk: asksDisk, for: self)
            upload?.fetch = driver.upload
            proceed()
            if upload != nil, upload?.fetch == nil { abandonUpload() }
        }
    }

    func attach(_ waiting: Waiting, to run: FillRun, as reader: Fill.ReaderID) {
        waiting.run = run
        waiting.reader = reader
        hall.node.waiterJoined()
    }

    /// Goes on with the answer in progress as far as fetch and socket allow.
    func proceed() {
        while let waiting, isAnswering, queuedBytes == 0 {
            let goesOn =
                switch waiting.stage {
                case .head: proceedToHead(waiting)
                case .transfer(let transfer): proceed(waiting, transfer)
                case .segments(let resident, let left): proceed(waiting, resident, left)
                }
            guard goesOn else { break }
        }
        outlet?.flush()
    }

    /// A request waits no more for the head of its answer; others go on waiting for theirs.
    func waitedLongEnough() {
        guard let waiting else { return }
        guard waiting.isAtHead else {
            if upload?.isSwitched == true { return endWaiting(waiting) }
            // The answer has begun before the request was whole.
            if upload?.fetch?.isFull == false { breakOff() }
            return
        }
        if waiting.inLine != nil { return fail(with: .overloaded(.time)) }
        guard let run = waiting.run, case .open = run.view.known.outcome else { return }
        if upload?.fetch?.isFull == true {
            // It is the origin that takes its time.
            return deadline = SystemClock.now() + settings.bodyTimeout
        }
        guard upload == nil else {
            return fail(with: .slow("body", seconds: settings.bodyTimeout.seconds))
        }
        // Who waits for another's fetch then goes by itself.
        if waiting.isCollapsed, !waiting.isForImage {
            dropRun(waiting)
            deadline = SystemClock.now() + settings.waitTimeout
            return enter(waiting, alone: true)
        }
        fail(with: .overloaded(.time))
    }

    // MARK: The end

    func endWaiting(_ waiting: Waiting) {
        dropRun(waiting)
        self.waiting = nil
        abandonUpload()
        finishAnswer()
        goOn()
    }

    /// After an answer that had to wait: what the client has sent meanwhile is looked at.
    func goOn() {
        guard !isAnswering else { return }
        outlet?.goOn()
    }

    func dropRun(_ waiting: Waiting) {
        guard let run = waiting.run else { return }
        waiting.run = nil
        hall.node.waiterLeft()
        if let reader = waiting.reader { run.leave(reader) }
    }
}

extension CacheNote.Reason {
    /// What RFC 9211 §2.2 calls it.
    fileprivate init(_ reason: ValidationReason) {
        switch reason {
        case .stale, .noCache: self = .stale
        case .requestNoCache, .requestMaxAge, .requestMinFresh: self = .request
        }
    }
}
