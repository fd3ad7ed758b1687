import Ground
import HTTPRules
import NIOCore
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
    /// The node's stamp when the request began that causes it; nil without a disk tier.
    let stamp: DiskStamp?
    /// The loop on which the fetch runs.
    let hall: Hall
    /// As they were when the fetch began: what is kept is decided by them to its end.
    let settings: NodeSettings
    private let state: Mutex<State>

    fileprivate struct State {
        var machine: Fill
        var body = GrowingBody(isKept: false)
        var edges = BodyEdges()
        var reservation: FillReservation
        var stale: Resident?
        var outcome = Outcome.open
        /// What is whole is kept for others.
        var isStored = true
        /// Bit n: a reader on loop n was told to wait.
        var hungryLoops: UInt64 = 0
        let windowBytesMin: Int
        let liveBytesMax: Int
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
        stamp: DiskStamp?, hall: Hall
    ) {
        self.key = key
        self.hash = hash
        self.negotiation = negotiation
        self.stamp = stamp
        self.hall = hall
        settings = hall.settings
        state = Mutex(
            State(
                machine: Fill(
                    negotiation: negotiation, windowBytes: UInt64(settings.windowBytes),
                    keptBytesMax: settings.objectBytesMax, patience: settings.patience),
                reservation: FillReservation(hall.node.store), stale: stale,
                windowBytesMin: settings.windowBytesMin, liveBytesMax: settings.liveBytesMax))
    }

    // MARK: Readers

    /// Nil if this fetch cannot serve such a request.
    func join(_ wanted: Negotiation) -> Fill.ReaderID? {
        state.withLock { state in
            state.machine.accepts(wanted) ? state.machine.joined(wanted) : nil
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
        change { $0.machine.left(reader, effects: &$1) }
    }

    /// What is known of the answer, and whether the body is held whole.
    var outcome: Outcome { state.withLock { $0.outcome } }
    /// The stored answer that the origin is asked about; nil if there is none.
    var stale: Resident? { state.withLock { $0.stale } }
    /// Whether an answer that is whole is kept for others.
    var isStored: Bool { state.withLock { $0.isStored } }
    var isPaused: Bool { state.withLock { $0.machine.isPaused } }
    /// How far a body that is not kept may run ahead of its slowest reader.
    var windowBytes: UInt64 { state.withLock { $0.machine.windowBytes } }
    var phase: Fill.Phase { state.withLock { $0.machine.phase } }

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
    func answered(_ answer: FillAnswer, isShared: Bool, varies: Negotiation) {
        change { state, effects in
            state.outcome = .answering(answer)
            state.body = GrowingBody(isKept: answer.isKept)
            state.machine.answered(
                .init(isKept: answer.isKept, isShared: isShared, varies: varies),
                effects: &effects)
        }
    }

    func received(_ piece: ByteBuffer) {
        change { state, effects in
            guard !state.isOver else { return }
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
    func ended(
        name: EntryName?, tags: [[UInt8]] = [],
        _ render: (UInt64) -> (facts: EntryFacts, head: RenderedHead)?
    ) -> Resident? {
        var resident: Resident?
        change { state, effects in
            if state.machine.phase == .storing, let made = render(state.body.endOffset) {
                resident = state.makeResident(self, name, tags, made.facts, made.head)
            }
            if let resident {
                state.outcome = state.isFromDisk ? .found(resident) : .stored(resident)
            }
            state.machine.ended(effects: &effects)
        }
        return resident
    }

    /// The stored answer is still good, and is now `resident`, which stays stored or not.
    func confirmed(_ resident: Resident, isShared: Bool, isStored: Bool) {
        change { state, effects in
            state.isStored = isStored
            state.outcome = .stored(resident)
            state.machine.confirmed(
                isShared: isShared, varies: resident.facts.varies, effects: &effects)
        }
    }

    /// An entry that is to be held against the origin was found.
    func ask(about stale: Resident) {
        state.withLock { $0.stale = stale }
    }

    /// The answer was on disk, and is now `resident`.
    func found(_ resident: Resident) {
        change { state, effects in
            state.outcome = .found(resident)
            state.machine.confirmed(
                isShared: true, varies: resident.facts.varies, effects: &effects)
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

    func ticked(_ elapsed: Interval) {
        change { $0.machine.ticked(elapsed, effects: &$1) }
    }

    /// The stored body with new facts and a new head; nil if there is no room for the head.
    func makeFreshened(
        _ stale: Resident, _ name: EntryName?, tags: [[UInt8]], _ facts: EntryFacts,
        _ head: RenderedHead
    ) -> Resident? {
        let overhead = Resident.overhead(
            keyBytes: key.count, headBytes: head.bytes.count,
            tagBytes: Resident.bytes(of: tags), bodyBytes: stale.body.size)
        return state.withLock { state in
            guard state.reservation.grow(by: overhead) else { return nil }
            state.reservation.handOver(overhead)
            return Resident(
                key: key, hash: hash, name: name, facts: facts, head: head.bytes,
                layout: head.layout, tags: tags, body: stale.body, account: hall.node.store.account)
        }
    }

    /// Whether the body, of which only the connection's end says that it is over, ends as its
    /// format says.
    var ending: ImageEnding { state.withLock { $0.edges.ending } }

    // MARK: Effects

    private func change(_ step: (inout State, inout [FillEffect]) -> Void) {
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
        while left != 0 {
            let index = left.trailingZeroBitCount
            left &= left - 1
            let hall = hall.node.halls[index]
            hall.loop.execute { hall.wakeReaders(of: self) }
        }
    }
}

extension FillRun.State {
    /// What the origin still says is not for this fetch.
    fileprivate var isOver: Bool { machine.phase == .ended || machine.phase == .failed }

    /// True if the body that is on its way comes from the disk.
    fileprivate var isFromDisk: Bool {
        guard case .answering(let answer) = outcome else { return false }
        return answer.isFromDisk
    }

    /// The entry that the whole of the answer is.
    private var resident: Resident? {
        switch outcome {
        case .stored(let resident), .found(let resident): resident
        case .open, .answering, .refused: nil
        }
    }

    /// Does what the effects ask of the state itself; gives the loops to be woken.
    fileprivate mutating func settle(_ effects: [FillEffect]) -> UInt64 {
        var wakes = false
        for effect in effects {
            switch effect {
            case .wakeReaders: wakes = true
            case .stopKeeping: body.stopKeeping()
            case .dropHead:
                body.drop(below: machine.heldFrom)
                let needed = Int(machine.receivedBytes - machine.heldFrom + machine.windowBytes)
                if reservation.heldBytes > needed {
                    reservation.giveBack(reservation.heldBytes - needed)
                }
            case .paceOrigin, .cancelOrigin: continue
            }
        }
        guard wakes else { return 0 }
        defer { hungryLoops = 0 }
        return hungryLoops
    }

    /// Bytes that a reader at `position` may take at once.
    ///
    /// Of what is as the network gave it only little: a client that then stalls holds on to it
    /// after it has become part of a chunk, and that memory is counted nowhere.
    fileprivate func limit(at position: UInt64) -> Int {
        if resident != nil { return .max }
        let inChunks = UInt64(body.chunkBytes)
        return position < inChunks ? Int(inChunks - position) : liveBytesMax
    }

    /// The window of a body that is kept no more is what was reserved for it.
    fileprivate mutating func narrowWindow() {
        let held = UInt64(max(reservation.heldBytes, windowBytesMin))
        machine.windowBytes = min(machine.windowBytes, held)
    }

    /// Opens the window of a body that is not kept; false if there is no room for one.
    fileprivate mutating func openWindow() -> Bool {
        let window = reservation.openWindow(
            large: Int(machine.windowBytes), small: windowBytesMin)
        machine.windowBytes = UInt64(window ?? windowBytesMin)
        return window != nil
    }

    /// True if the reservation covers a body of `bytes`, after growing it where the length was not
    /// known before.
    fileprivate mutating func hasRoom(for bytes: UInt64) -> Bool {
        guard case .answering(let answer) = outcome, answer.sizeBytes == nil else { return true }
        let needed = FillAnswer.reservedBytes(growingTo: bytes)
        return needed <= reservation.heldBytes
            || reservation.grow(by: needed - reservation.heldBytes)
    }

    fileprivate mutating func appendSlices(
        from offset: UInt64, count: Int, to slices: inout [ByteBuffer]
    ) {
        if let resident {
            resident.body.appendSlices(from: offset, count: count, to: &slices)
        } else {
            body.appendSlices(from: offset, count: count, to: &slices)
        }
    }

    /// Turns what was received into an entry; nil if there is no room even for its overhead.
    fileprivate mutating func makeResident(
        _ run: FillRun, _ name: EntryName?, _ tags: [[UInt8]], _ facts: EntryFacts,
        _ head: RenderedHead
    ) -> Resident? {
        let size = body.endOffset
        let capacity = BodyLayout.capacity(size)
        let overhead = Resident.overhead(
            keyBytes: run.key.count, headBytes: head.bytes.count,
            tagBytes: Resident.bytes(of: tags), bodyBytes: size)
        let missing = capacity + overhead - reservation.heldBytes
        guard missing <= 0 || reservation.grow(by: missing), let chunks = body.finish() else {
            return nil
        }
        reservation.handOver(capacity + overhead)
        reservation.giveBack(reservation.heldBytes)
        let account = run.hall.node.store.account
        return Resident(
            key: run.key, hash: run.hash, name: name, facts: facts, head: head.bytes,
            layout: head.layout, tags: tags,
            body: Body(chunks: chunks, size: size, capacityBytes: capacity, account: account),
            account: account)
    }
}
