import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Synchronization
import Tiers

/// One fetch under way: the decisions of `Serving.Fill` joined to bytes and to memory.
///
/// `FillFetch` brings the bytes, on the loop of the request that caused it; readers on any loop
/// take them. Every event is the same: lock, step the machine, unlock, run the effects.
final class FillRun: Sendable {
    let key: [UInt8]
    let hash: UInt64
    /// What is asked for, and with which negotiation.
    let negotiation: Negotiation
    /// From the moment at which the request began that causes it until it leaves the table.
    let lease: StampLease
    /// The loop on which the fetch runs.
    let hall: Hall
    /// The request that causes it, which owners and origins are told of.
    let cause: RequestCause
    /// The client that causes it; nil for this machine, a peer, or nobody.
    let client: ShareHolder?
    /// What is asked of a site; nil for an image.
    let query: SiteRequest?
    /// Nobody else may wait for it.
    let isAlone: Bool
    /// It is for a peer that wants to know whether the answer is here: nobody else is asked.
    let isProbe: Bool
    /// It brings the rest of what another fetch has begun.
    let isResumption: Bool
    /// A peer has lost the answer once: the origin is asked.
    let skipsPeers: Bool
    /// As they were when the fetch began: what is kept is decided by them to its end.
    let settings: NodeSettings
    let state: Mutex<State>

    struct State {
        var machine: Fill
        var body = GrowingBody(isKept: false)
        var edges = BodyEdges()
        var reservation: FillReservation
        var stale: Resident?
        var outcome = Outcome.open
        /// What is whole is kept for others.
        var isStored = true
        /// A peer waits for it, so that it may wait for no peer that might wait for this one.
        var isOwners = false
        /// When the origin was asked; nil if it is not.
        var askedAt: Instant?
        var isFromPeer = false
        /// It was joined by the one who caused it.
        var isBegun = false
        /// The client that caused it answers for what nobody reads of it.
        var isPaid = false
        /// The disk is looked at, by the wishes of the one who caused it.
        var isOnDisk = false
        /// The origin has said that what is stored still holds.
        var isValidated = false
        /// What its answer is tagged with; empty until its head is known.
        var tags: [[UInt8]] = []
        /// The origin failed, and the stale answer is given in its stead.
        var stoodIn: StoodIn?
        /// The answer as the one who caused the fetch gets it, if that is not as it is stored.
        var own: FillAnswer?
        /// What the rules say of an answer of a site's.
        var examination: Examination?
        /// What follows the body (RFC 9110 §6.5), as lines with their ends.
        var trailers: [UInt8] = []
        /// Bit n: a reader on loop n was told to wait.
        var hungryLoops: UInt64 = 0
        let windowBytesMin: Int
        let liveBytesMax: Int
    }

    /// Why what is stored was given in the stead of an answer of the origin's.
    struct StoodIn: Sendable {
        /// That of the answer; nil if there was none.
        let status: UInt16?
    }

    /// What is known of the answer.
    enum Outcome: Sendable {
        case open
        /// The body is on its way.
        case answering(FillAnswer)
        /// The whole of it is an entry, new or freshened.
        case stored(Resident)
        /// The whole of it came from the disk, and is an entry in memory now.
        case found(Resident)
        /// There is nothing to serve; `state` says why.
        case refused(Problem)
    }

    init(
        key: [UInt8], hash: UInt64, negotiation: Negotiation, stale: Resident?,
        lease: StampLease, hall: Hall, cause: RequestCause,
        client: ShareHolder? = nil, query: SiteRequest? = nil,
        expected: FieldNames = FieldNames(), isAlone: Bool = false, isProbe: Bool = false,
        isResumption: Bool = false, skipsPeers: Bool = false
    ) {
        self.isResumption = isResumption
        self.isAlone = isAlone
        self.skipsPeers = skipsPeers
        self.isProbe = isProbe
        self.key = key
        self.hash = hash
        self.negotiation = negotiation
        self.lease = lease
        self.hall = hall
        self.cause = cause
        // It was looked for before the lease: what was purged between is not covered by it.
        let marks = hall.node.marks
        let stale = stale.flatMap { stale in
            let effect = marks.effect(
                on: stale.name, key: stale.key, tags: stale.tags, stamp: stale.stamp)
            return effect == .dead ? nil : stale
        }
        self.query = query
        self.client = client
        settings = hall.settings
        state = Mutex(
            State(
                machine: Fill(
                    negotiation: negotiation, request: query?.told, expected: expected,
                    windowBytes: UInt64(settings.windowBytes),
                    keptBytesMax: query?.plan.objectBytesMax ?? settings.objectBytesMax,
                    patience: settings.patience,
                    contendedPatience: settings.contendedPatience),
                reservation: FillReservation(hall.node.store), stale: stale,
                windowBytesMin: settings.windowBytesMin, liveBytesMax: settings.liveBytesMax))
    }

    /// The node's stamp when the request began that causes it.
    var stamp: Stamp { lease.stamp }

    // MARK: Readers

    /// Nil if this fetch cannot serve such a request.
    func join(_ wanted: Negotiation, _ query: SiteRequest? = nil) -> Fill.ReaderID? {
        var isReadAgain = false
        defer { if isReadAgain { hall.node.fills.readersChanged(self) } }
        return state.withLock { state in
            guard !(isAlone && state.isBegun),
                state.machine.accepts(wanted, query?.told)
            else { return nil }
            if state.isOnDisk, query?.control.isEmpty == false { return nil }
            // Who wants to be sure that it is new waits for no answer that has begun before.
            if state.machine.phase != .asking, query?.wantsValidation == true { return nil }
            isReadAgain = state.isBegun && state.machine.readerCount == 0
            state.isBegun = true
            return state.machine.joined(wanted, query?.told)
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
            let step = state.machine.next(
                for: reader, limit: min(limit, state.limit(at: state.machine.position(of: reader))))
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
        change { $0.machine.advanced(reader, by: bytes, effects: &$1) }
    }

    /// True if the body is still being received and kept; the hall's readers are then woken at the
    /// next event.
    func awaitsEnd(on hall: Hall) -> Bool {
        state.withLock { state in
            guard state.machine.phase == .storing else { return false }
            state.hungryLoops |= 1 << UInt64(hall.index)
            return true
        }
    }

    func leave(_ reader: Fill.ReaderID) {
        var isUnread = false
        change { state, effects in
            state.machine.left(reader, effects: &effects)
            isUnread = state.isUnread
        }
        if isUnread { hall.node.fills.readersChanged(self) }
    }

    // MARK: The fetch

    /// Reserves memory for a body; false if there is no room for it.
    func reserve(_ bytes: Int) -> Bool {
        state.withLock { $0.reservation.grow(by: bytes) }
    }

    /// Reserves the window of a body that is not kept, a small one if memory has no room for more;
    /// false if not even for that.
    func openWindow() -> Bool {
        state.withLock { $0.openWindow() }
    }

    /// The head was received and a body follows; of one that is not kept the window is open.
    func answered(
        _ answer: FillAnswer, isShared: Bool, varies: Negotiation,
        nominated: FieldNames = FieldNames(), own: FillAnswer? = nil
    ) {
        change { state, effects in
            guard !state.isOver else { return }
            state.outcome = .answering(answer)
            state.isFromPeer = answer.isFromPeer
            state.own = own
            state.examination = answer.examination
            state.tags = answer.tags
            state.body = GrowingBody(isKept: answer.isKept)
            state.machine.answered(
                .init(
                    isKept: answer.isKept, isShared: isShared, varies: varies,
                    nominated: nominated,
                    standing: standing(answer.tags, answer.facts, isShared: isShared)),
                effects: &effects)
        }
    }

    func received(_ piece: ByteBuffer) {
        var isUnread = false
        defer { if isUnread { takeUnread(piece.readableBytes) } }
        change { state, effects in
            guard !state.isOver else { return }
            isUnread = state.isUnread && state.machine.isUnreadLimited
            state.body.append(piece)
            state.edges.append(piece)
            let hasRoom =
                state.machine.phase != .storing || state.hasRoom(for: state.body.endOffset)
            if !hasRoom { state.narrowWindow() }
            state.machine.received(piece.readableBytes, hasRoom: hasRoom, effects: &effects)
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
            if state.machine.phase == .storing, let made = render(state.body.endOffset) {
                resident = state.makeResident(self, name, tags, place, made.facts, made.head)
            }
            if let resident {
                state.outcome = state.isFromDisk ? .found(resident) : .stored(resident)
            }
            state.machine.ended(effects: &effects)
        }
        return resident
    }

    /// The stored answer is still good, and is now `resident`, which stays stored or not.
    func confirmed(
        _ resident: Resident, isShared: Bool, isStored: Bool, isValidated: Bool = false,
        nominated: FieldNames = FieldNames(), stoodIn: StoodIn? = nil, isFromPeer: Bool = false
    ) {
        change { state, effects in
            guard !state.isOver else { return }
            state.isFromPeer = isFromPeer
            state.isStored = isStored
            state.stoodIn = stoodIn
            state.isValidated = isValidated
            state.outcome = .stored(resident)
            state.machine.confirmed(
                isShared: isShared, varies: resident.facts.varies, nominated: nominated,
                standing: standing(
                    resident.tags, stoodIn == nil ? resident.facts : nil, isShared: isShared),
                effects: &effects)
        }
    }

    /// What follows the body; to be told before its end.
    func trailed(by lines: [UInt8]) {
        state.withLock { $0.trailers = lines }
    }

    /// An entry that is to be held against the origin was found.
    func ask(about stale: Resident) {
        state.withLock { $0.stale = stale }
    }

    /// The answer was on disk, and is now `resident`.
    func found(_ resident: Resident, nominated: FieldNames = FieldNames()) {
        change { state, effects in
            guard !state.isOver else { return }
            state.outcome = .found(resident)
            state.machine.confirmed(
                isShared: true, varies: resident.facts.varies, nominated: nominated,
                standing: standing(resident.tags, resident.facts, isShared: true),
                effects: &effects)
        }
    }

    /// The rest cannot be read from the disk; whoever has nothing of it begins anew.
    func lost() {
        change { $0.machine.lost(effects: &$1) }
    }

    /// The origin spoke of another answer than the one it was asked about.
    func misunderstood() {
        change { $0.machine.misunderstood(effects: &$1) }
    }

    func failed(_ problem: Problem) {
        change { state, effects in
            guard !state.isOver else { return }
            state.outcome = .refused(problem)
            state.machine.failed(effects: &effects)
        }
    }

    func ticked(_ elapsed: Interval, isContended: Bool) {
        change { $0.machine.ticked(elapsed, isContended: isContended, effects: &$1) }
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
                account: hall.node.store.account, share: query?.share)
        }
    }

    /// Whether the body, of which only the connection's end says that it is over, ends as its
    /// format says.
    var ending: ImageEnding { state.withLock { $0.edges.ending } }

    // MARK: Effects

    func change(_ step: (inout State, inout [FillEffect]) -> Void) {
        var effects: [FillEffect] = []
        let hungryLoops = state.withLock { state in
            step(&state, &effects)
            return state.settle(effects)
        }
        if hungryLoops != 0 { wake(hungryLoops) }
        for effect in effects {
            switch effect {
            case .paceOrigin: hall.tell(self) { $0.pace() }
            case .cancelOrigin: hall.tell(self) { $0.cancel() }
            case .wakeReaders, .dropHead, .stopKeeping: continue
            }
        }
    }

    private func wake(_ loops: UInt64) {
        var left = loops
        let halls = hall.node.halls
        while left != 0 {
            let index = left.trailingZeroBitCount
            left &= left - 1
            // At the end of the node there are none.
            guard index < halls.count else { return }
            let hall = halls[index]
            hall.loop.execute { hall.wakeReaders(of: self) }
        }
    }
}
