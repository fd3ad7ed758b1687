import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Synchronization
import Tiers

/// One fetch under way: the decisions of `Serving.Lookup` joined to bytes and to memory.
///
/// Its ``LookupDriver`` has the bytes brought, on the loop of the request that caused it; readers
/// on any loop take them. Every event is the same: lock, step the machine, unlock, run the effects.
final class FillRun: Sendable {
    /// From the moment at which the request began that causes it until it leaves the table.
    let lease: StampLease
    /// The loop on which the fetch runs.
    let hall: Hall
    /// The request that causes it, which owners and origins are told of.
    let cause: RequestCause
    /// The client that causes it; nil for this machine, a peer, or nobody.
    let client: ShareHolder?
    /// What is asked.
    let query: SiteRequest
    let wish: Lookup.Wish
    /// As they were when the fetch began: what is kept is decided by them to its end.
    let settings: NodeSettings
    let state: Mutex<State>

    struct State {
        var lookup: Lookup
        var body = GrowingBody(isKept: false)
        var edges = BodyEdges()
        var reservation: FillReservation
        var known: FillView.Known
        /// When the origin was asked; nil if it is not.
        var askedAt: Instant?
        /// What its answer is tagged with; empty until its head is known.
        var tags: [[UInt8]] = []
        /// Bit n: a reader on loop n was told to wait.
        var hungryLoops: UInt64 = 0
        let windowBytesMin: Int
        let liveBytesMax: Int
    }

    init(
        _ query: SiteRequest, stale: Resident? = nil, on hall: Hall, cause: RequestCause,
        client: ShareHolder? = nil, expected: FieldNames = FieldNames(),
        wish: Lookup.Wish = Lookup.Wish()
    ) {
        self.wish = wish
        self.query = query
        lease = hall.node.marks.lease()
        self.hall = hall
        self.cause = cause
        // It was looked for before the lease: what was purged between is not covered by it.
        let marks = hall.node.marks
        let stale = stale.flatMap { stale in
            let effect = marks.effect(
                on: stale.key, tags: stale.tags, stamp: stale.stamp)
            return effect == .dead ? nil : stale
        }
        self.client = client
        settings = hall.settings
        let fill = Fill(
            request: query.candidate.lines, expected: expected,
            windowBytes: UInt64(settings.windowBytes), keptBytesMax: query.plan.objectBytesMax,
            patience: settings.patience, contendedPatience: settings.contendedPatience)
        state = Mutex(
            State(
                lookup: Lookup(wish, fill), reservation: FillReservation(hall.node.store),
                known: FillView.Known(stale: stale),
                windowBytesMin: settings.windowBytesMin, liveBytesMax: settings.liveBytesMax))
    }

    var key: [UInt8] { query.key }
    /// The keyed hash of ``key``.
    var hash: UInt64 { query.hash }

    /// The node's stamp when the request began that causes it.
    var stamp: Stamp { lease.stamp }

    // MARK: Readers

    /// Nil if this fetch cannot serve such a request.
    func join(_ query: SiteRequest) -> Fill.ReaderID? {
        var isReadAgain = false
        defer { if isReadAgain { hall.node.fills.readersChanged(self) } }
        return state.withLock { state in
            let wasUnread = state.isUnread
            let reader = state.lookup.join(query.candidate)
            isReadAgain = wasUnread && reader != nil
            return reader
        }
    }

    /// What the reader does next; bytes to take are appended to `slices`, and held until
    /// ``advance(_:by:)``.
    ///
    /// A reader that is told to wait is woken through its hall.
    func step(
        _ reader: Fill.ReaderID, limit: Int, on hall: Hall, slices: inout [ByteBuffer]
    ) -> ReaderStep {
        state.withLock { state in
            let step = state.lookup.fill.next(
                for: reader,
                limit: min(limit, state.limit(at: state.lookup.fill.position(of: reader))))
            switch step {
            case .take(let offset, let count):
                state.appendSlices(from: offset, count: count, to: &slices)
            case .wait:
                state.hungryLoops |= 1 << UInt64(hall.index)
            case .finish, .startOver, .breakOff, .fail:
                break
            }
            return step
        }
    }

    /// The reader's client has these bytes.
    func advance(_ reader: Fill.ReaderID, by bytes: Int) {
        change { $0.lookup.fill.advanced(reader, by: bytes, effects: &$1) }
    }

    /// True if the body is still being received and kept; the hall's readers are then woken at the
    /// next event.
    func awaitsEnd(on hall: Hall) -> Bool {
        state.withLock { state in
            guard state.lookup.fill.phase == .storing else { return false }
            state.hungryLoops |= 1 << UInt64(hall.index)
            return true
        }
    }

    func leave(_ reader: Fill.ReaderID) {
        var isUnread = false
        change { state, effects in
            state.lookup.fill.left(reader, effects: &effects)
            isUnread = state.isUnread
        }
        if isUnread { hall.node.fills.readersChanged(self) }
    }

    // MARK: The fetch

    /// Reserves memory for a body; false if there is no room for it.
    ///
    /// With a hash, that of its entry's key, it has to be worth what would go for it, now and as
    /// it grows.
    func reserve(_ bytes: Int, judgedAs hash: UInt64? = nil) -> Bool {
        state.withLock { state in
            state.reservation.judgedHash = hash
            return state.reservation.grow(by: bytes)
        }
    }

    /// Reserves the window of a body that is not kept, a small one if memory has no room for more;
    /// false if not even for that.
    func openWindow() -> Bool {
        state.withLock { $0.openWindow() }
    }

    /// The head was received and a body follows; of one that is not kept the window is open.
    func answered(
        _ answer: FillAnswer, isShared: Bool, isStored: Bool = true,
        nominated: FieldNames = FieldNames(), own: FillAnswer? = nil,
        isHitForMiss: Bool = false, isOwn: Bool = false, stoodIn: FillView.StoodIn? = nil
    ) {
        change { state, effects in
            guard !state.isOver else { return }
            state.known.outcome = .answering(answer)
            state.known.isFromPeer = answer.isFromPeer
            state.known.isStored = isStored
            state.known.stoodIn = stoodIn
            state.known.own = own
            state.known.isHitForMiss = isHitForMiss
            state.known.isOwn = isOwn
            state.known.examination = answer.examination
            state.tags = answer.tags
            state.body = GrowingBody(isKept: answer.isKept)
            state.lookup.fill.answered(
                .init(
                    isKept: answer.isKept, isShared: isShared, nominated: nominated,
                    standing: standing(
                        answer.tags, stoodIn == nil ? answer.facts : nil, isShared: isShared)),
                effects: &effects)
        }
    }

    func received(_ piece: ByteBuffer) {
        var isUnread = false
        defer { if isUnread { takeUnread(piece.readableBytes) } }
        change { state, effects in
            guard !state.isOver else { return }
            isUnread = state.isUnread && state.lookup.fill.isUnreadLimited
            state.body.append(piece)
            state.edges.append(piece)
            let hasRoom =
                state.lookup.fill.phase != .storing || state.hasRoom(for: state.body.endOffset)
            if !hasRoom { state.narrowWindow() }
            state.lookup.fill.received(piece.readableBytes, hasRoom: hasRoom, effects: &effects)
        }
    }

    /// All of the body was received; gives the entry if it was kept.
    ///
    /// `render` makes facts and head, now that the size is known; if it gives nil, nothing is kept.
    ///
    /// `name` is what it is called on disk, if there is one; `tags` are its further names.
    ///
    /// `place` is where it stands if that is not the key that was asked for.
    func ended(
        name: EntryName?, tags: [[UInt8]] = [], place: EntryPlace? = nil,
        _ render: (UInt64) -> (facts: EntryFacts, head: RenderedHead)?
    ) -> Resident? {
        var resident: Resident?
        change { state, effects in
            if state.lookup.fill.phase == .storing, let made = render(state.body.endOffset) {
                resident = state.makeResident(self, name, tags, place, made.facts, made.head)
            }
            if let resident {
                state.known.outcome = state.isFromDisk ? .found(resident) : .stored(resident)
            }
            state.lookup.fill.ended(effects: &effects)
        }
        return resident
    }

    /// The entry that a body is which has come in one piece; nil if there is no room for it.
    func makeWhole(
        _ body: [ByteBuffer], _ name: EntryName?, tags: [[UInt8]], place: EntryPlace?,
        _ facts: EntryFacts, _ head: RenderedHead
    ) -> Resident? {
        state.withLock { state in
            state.body = GrowingBody(isKept: true)
            for piece in body { state.body.append(piece) }
            return state.makeResident(self, name, tags, place, facts, head)
        }
    }

    /// The stored answer is still good, and is now `resident`, which stays stored or not.
    func confirmed(
        _ resident: Resident, isShared: Bool, isStored: Bool, isValidated: Bool = false,
        nominated: FieldNames = FieldNames(), stoodIn: FillView.StoodIn? = nil,
        isFromPeer: Bool = false
    ) {
        change { state, effects in
            guard !state.isOver else { return }
            state.known.isFromPeer = isFromPeer
            state.known.isStored = isStored
            state.known.stoodIn = stoodIn
            state.known.isValidated = isValidated
            state.known.outcome = .stored(resident)
            state.lookup.fill.confirmed(
                isShared: isShared, nominated: nominated,
                standing: standing(
                    resident.tags, stoodIn == nil ? resident.facts : nil, isShared: isShared),
                effects: &effects)
        }
    }

    /// What follows the body; to be told before its end.
    func trailed(by lines: [UInt8]) {
        state.withLock { $0.known.trailers = lines }
    }

    /// An entry that is to be held against the origin was found.
    func ask(about stale: Resident) {
        state.withLock { $0.known.stale = stale }
    }

    /// The answer was on disk, and is now `resident`.
    func found(_ resident: Resident, nominated: FieldNames = FieldNames()) {
        change { state, effects in
            guard !state.isOver else { return }
            state.known.outcome = .found(resident)
            state.lookup.fill.confirmed(
                isShared: true, nominated: nominated,
                standing: standing(resident.tags, resident.facts, isShared: true),
                effects: &effects)
        }
    }

    /// The origin spoke of another answer than the one it was asked about.
    func misunderstood() {
        change { $0.lookup.fill.misunderstood(effects: &$1) }
    }

    /// `nominated` are the fields of requests that it depends on whether there is an answer.
    func failed(_ problem: Problem, nominated: FieldNames = FieldNames()) {
        change { state, effects in
            guard !state.isOver else { return }
            state.known.outcome = .refused(problem)
            state.lookup.fill.failed(nominated: nominated, effects: &effects)
        }
    }

    func ticked(_ elapsed: Interval, isContended: Bool) {
        change { $0.lookup.fill.ticked(elapsed, isContended: isContended, effects: &$1) }
    }

    /// The stored body with new facts and a new head; nil if there is no room for the head.
    func makeFreshened(
        _ stale: Resident, _ name: EntryName?, tags: [[UInt8]], place: EntryPlace? = nil,
        _ facts: EntryFacts, _ head: RenderedHead
    ) -> Resident? {
        let place = place ?? EntryPlace(key: key, hash: hash)
        let overhead = Resident.overhead(
            keyBytes: place.key.count, headBytes: head.bytes.count,
            tagBytes: Resident.bytes(of: tags), bodyBytes: stale.body.size)
        return state.withLock { state in
            guard state.reservation.grow(by: overhead) else { return nil }
            state.reservation.handOver(overhead)
            return Resident(
                key: place.key, hash: place.hash, name: name, facts: facts, head: head.bytes,
                layout: head.layout, tags: tags, stamp: stamp, body: stale.body,
                account: hall.node.store.account, share: query.share)
        }
    }

    /// Whether the body, of which only the connection's end says that it is over, ends as its
    /// format says.
    var ending: ImageEnding { state.withLock { $0.edges.ending } }

    // MARK: Effects

    /// Does what the effects ask of the body and its readers; the others are for its driver.
    @discardableResult
    func change(_ step: (inout State, inout [LookupEffect]) -> Void) -> [LookupEffect] {
        var effects: [LookupEffect] = []
        let hungryLoops = state.withLock { state in
            step(&state, &effects)
            return state.settle(effects)
        }
        if hungryLoops != 0 { wake(hungryLoops) }
        for effect in effects {
            switch effect {
            case .pace: hall.tell(self) { $0.pace() }
            case .breakOff: hall.tell(self) { $0.cancel() }
            default: break
            }
        }
        return effects
    }

    private func wake(_ loops: UInt64) {
        var left = loops
        let halls = hall.node.halls
        while left != 0 {
            let index = left.trailingZeroBitCount
            left &= left - 1
            // At the end of the node there are none.
            guard index < halls.count else { return }
            halls[index].wakeSoon(self)
        }
    }
}
