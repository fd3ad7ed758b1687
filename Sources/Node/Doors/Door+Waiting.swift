import Ground
import HTTPRules
import NIOCore
import Origin
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
        isAnswering = true
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

    /// Joins or causes the fetch for `waiting`, as soon as the loop has time for it.
    func enter(_ waiting: Waiting, alone: Bool) {
        guard hall.hasTurn(waiting, of: shareHolder) else { return waiting.inLine = (self, alone) }
        begin(waiting, alone: alone)
    }

    /// The same, now: it has its turn.
    func begin(_ waiting: Waiting, alone: Bool) {
        let node = hall.node
        guard node.waiterCount < settings.waitersMax else {
            return fail(with: .overloaded(.waiters))
        }
        var stale: Resident?
        var expected = FieldNames()
        var note = CacheNote.hit(.memory)
        let begin = { [self] in makeRun(for: waiting, stale, expected, alone: alone) }
        let lookUp = { [self] () -> Resident? in
            switch find(waiting) {
            case .answer(let found, .fresh): return found
            case .answer(let found, .stale):
                note = .stale(.memory)
                return found
            case .answer(_, .unusable), .passes: break
            case .answer(let found, _):
                stale = found
                expected = found.nominated
            case .absent(let names): expected = names
            }
            return nil
        }
        let admission: FillTable.Admission
        if alone {
            // What is to be freshened, or to stand in for an origin that fails.
            if waiting.query?.mode == .whole, lookUp() != nil { stale = nil }
            let (run, reader) = node.fills.beginAlone(
                key: waiting.key, hash: waiting.hash, waiting.wanted, waiting.query, begin: begin)
            admission = .begun(run, reader)
        } else {
            admission = node.fills.admit(
                key: waiting.key, hash: waiting.hash, wanted: waiting.wanted,
                query: waiting.query, lookUp: lookUp, begin: begin)
        }
        switch admission {
        case .stored(let resident):
            part = note == .hit(.memory) ? .hit : .stale
            serve(waiting, from: resident, note: note)
        case .joined(let run, let reader):
            part = .collapsed
            waiting.join()
            if waiting.query?.cameThroughNode == true {
                deadline = min(deadline, SystemClock.now() + NodeSettings.joinedWaitTimeout)
            }
            attach(waiting, to: run, as: reader)
            proceed()
        case .begun(let run, let reader):
            part = stale == nil ? .miss : .revalidated
            waiting.isFirst = true
            if waiting.query?.mode == .verbatim { part = .passed }
            if stale != nil, waiting.query == nil { waiting.reason = .stale }
            waiting.isCollapsed = false
            attach(waiting, to: run, as: reader)
            // What may not be shared is not stored either; of a site the request may be one that
            // others cannot wait with.
            let isOfSite = waiting.query != nil
            let asksDisk = waiting.asksDisk && (!alone || isOfSite) && stale == nil
            // Who has to begin anew may find there what others have left.
            waiting.asksDisk = !isOfSite
            let driver = hall.start(run, name: waiting.name, asksDisk: asksDisk, for: self)
            if upload != nil { upload?.fetch = driver.upload }
            proceed()
            if upload != nil, upload?.fetch == nil { abandonUpload() }
        }
    }

    /// The fetch that a request causes.
    private func makeRun(
        for waiting: Waiting, _ stale: Resident?, _ expected: FieldNames, alone: Bool
    ) -> FillRun {
        var wish = Lookup.Wish()
        wish.isAlone = alone
        wish.skipsPeers = waiting.skipsPeers
        return FillRun(
            key: waiting.key, hash: waiting.hash, negotiation: waiting.wanted, stale: stale,
            lease: hall.node.marks.lease(), hall: hall, cause: cause(waiting.request),
            client: shareHolder, query: waiting.query, expected: expected, wish: wish)
    }

    /// What memory has for a request that it could not serve a moment ago.
    private func find(_ waiting: Waiting) -> SiteFinding {
        let (store, now) = (hall.node.store, SystemClock.now())
        if let query = waiting.query { return query.find(in: store, now: now) }
        let key = waiting.key
        let found = store.find(
            key.span, 0..<key.count, hash: waiting.hash, wanted: waiting.wanted)
        guard let found else { return .absent(expected: FieldNames()) }
        let isUsable = hall.fence.judge(found.facts, for: waiting.facts, now: now) != .revalidate
        return .answer(found, isUsable ? .fresh : .validate(.stale))
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
        if waiting.isCollapsed, waiting.query != nil {
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
