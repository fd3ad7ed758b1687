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
final class ActiveFetch: Sendable {
    /// From the moment at which the request began that causes it until it leaves the table.
    let versionPin: VersionPin
    /// The loop on which the fetch runs.
    let context: EventLoopContext
    /// The request that causes it, which owners and origins are told of.
    let correlation: RequestCorrelation
    /// The client that causes it; nil for this machine, a peer, or nobody.
    let client: QuotaHolder?
    /// What is asked.
    let siteRequest: SiteRequest
    let options: Lookup.Options
    /// As they were when the fetch began: what is kept is decided by them to its end.
    let settings: NodeSettings
    let state: Mutex<State>

    struct State {
        var lookup: Lookup
        var body = BodyBuffer(isRetained: false)
        var bodyEdges = BodyEdges()
        var reservation: FetchReservation
        var progress: FetchSnapshot.Progress
        /// When the origin was asked; nil if it is not.
        var originFetchStartedAt: Instant?
        /// What its answer is tagged with; empty until its head is known.
        var tags: [[UInt8]] = []
        /// Bit n: a reader on loop n was told to wait.
        var waitingLoops: UInt64 = 0
        let windowBytesMin: Int
        let unchunkedBytesMax: Int
    }

    init(
        _ query: SiteRequest, stale: MemoryEntry? = nil, on context: EventLoopContext,
        cause: RequestCorrelation,
        client: QuotaHolder? = nil, expected: FieldNames = FieldNames(),
        wish: Lookup.Options = Lookup.Options()
    ) {
        self.options = wish
        self.siteRequest = query
        versionPin = context.node.marks.pin()
        self.context = context
        self.correlation = cause
        // It was looked for before the lease: what was purged between is not covered by it.
        let marks = context.node.marks
        let stale = stale.flatMap { stale in
            let effect = marks.effect(
                on: stale.key, tags: stale.tags, version: stale.version)
            return effect == .purged ? nil : stale
        }
        self.client = client
        settings = context.settings
        let fetch = Fetch(
            request: query.candidate.requestFields, expected: expected,
            windowBytes: UInt64(settings.windowBytes), keptBytesMax: query.policy.objectBytesMax,
            patience: settings.slowReaderTimeout,
            contendedPatience: settings.contendedSlowReaderTimeout)
        state = Mutex(
            State(
                lookup: Lookup(wish, fetch), reservation: FetchReservation(context.node.store),
                progress: FetchSnapshot.Progress(staleEntry: stale),
                windowBytesMin: settings.windowBytesMin,
                unchunkedBytesMax: settings.unchunkedBytesMax))
    }

    var key: [UInt8] { siteRequest.key }
    /// The keyed hash of ``key``.
    var hash: UInt64 { siteRequest.hash }

    /// The node's stamp when the request began that causes it.
    var invalidationVersion: InvalidationVersion { versionPin.version }

    // MARK: Readers

    /// Nil if this fetch cannot serve such a request.
    func join(_ query: SiteRequest) -> Fetch.ReaderID? {
        var isReadAgain = false
        defer { if isReadAgain { context.node.fetches.readersChanged(self) } }
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
    func nextStep(
        _ reader: Fetch.ReaderID, limit: Int, on context: EventLoopContext,
        slices: inout [ByteBuffer]
    ) -> ReaderStep {
        state.withLock { state in
            let step = state.lookup.fetch.nextStep(
                for: reader,
                limit: min(limit, state.readLimit(at: state.lookup.fetch.position(of: reader))))
            switch step {
            case .read(let offset, let count):
                state.appendSlices(from: offset, count: count, to: &slices)
            case .wait:
                state.waitingLoops |= 1 << UInt64(context.index)
            case .finish, .restart, .abort, .fail:
                break
            }
            return step
        }
    }

    /// The reader's client has these bytes.
    func advance(_ reader: Fetch.ReaderID, by bytes: Int) {
        update { $0.lookup.fetch.readerAdvanced(reader, by: bytes, effects: &$1) }
    }

    /// True if the body is still being received and kept; the hall's readers are then woken at the
    /// next event.
    func awaitCompletion(on context: EventLoopContext) -> Bool {
        state.withLock { state in
            guard state.lookup.fetch.phase == .storing else { return false }
            state.waitingLoops |= 1 << UInt64(context.index)
            return true
        }
    }

    func leave(_ reader: Fetch.ReaderID) {
        var isUnread = false
        update { state, effects in
            state.lookup.fetch.readerLeft(reader, effects: &effects)
            isUnread = state.isUnread
        }
        if isUnread { context.node.fetches.readersChanged(self) }
    }

    // MARK: The fetch

    /// Reserves memory for a body; false if there is no room for it.
    ///
    /// With a hash, that of its entry's key, it has to be worth what would go for it, now and as
    /// it grows.
    func reserve(_ bytes: Int, weighedBy hash: UInt64? = nil) -> Bool {
        state.withLock { state in
            state.reservation.admissionHash = hash
            return state.reservation.grow(by: bytes)
        }
    }

    /// Reserves the window of a body that is not kept, a small one if memory has no room for more;
    /// false if not even for that.
    func openWindow() -> Bool {
        state.withLock { $0.openWindow() }
    }

    /// The head was received and a body follows; of one that is not kept the window is open.
    func responseHeadReceived(
        _ response: FetchedResponse, isShared: Bool, isStored: Bool = true,
        nominated: FieldNames = FieldNames(), requesterResponse: FetchedResponse? = nil,
        isHitForMiss: Bool = false, isRequesterSpecific: Bool = false,
        staleFallback: FetchSnapshot.StaleFallback? = nil
    ) {
        update { state, effects in
            guard !state.isFinished else { return }
            state.progress.outcome = .receiving(response)
            state.progress.isFromPeer = response.isFromPeer
            state.progress.isStored = isStored
            state.progress.staleFallback = staleFallback
            state.progress.requesterResponse = requesterResponse
            state.progress.isHitForMiss = isHitForMiss
            state.progress.isRequesterSpecific = isRequesterSpecific
            state.progress.cacheability = response.cacheability
            state.tags = response.tags
            state.body = BodyBuffer(isRetained: response.isKept)
            state.lookup.fetch.responseHeadReceived(
                .init(
                    isKept: response.isKept, isShared: isShared, nominated: nominated,
                    standing: validity(
                        response.tags, staleFallback == nil ? response.metadata : nil,
                        isShared: isShared)),
                effects: &effects)
        }
    }

    func bodyReceived(_ piece: ByteBuffer) {
        var isUnread = false
        defer { if isUnread { recordUnreadBytes(piece.readableBytes) } }
        update { state, effects in
            guard !state.isFinished else { return }
            isUnread = state.isUnread && state.lookup.fetch.isUnreadLimited
            state.body.append(piece)
            state.bodyEdges.append(piece)
            let hasRoom =
                state.lookup.fetch.phase != .storing || state.hasRoom(for: state.body.endOffset)
            if !hasRoom { state.shrinkWindow() }
            state.lookup.fetch.bodyReceived(
                piece.readableBytes, hasRoom: hasRoom, effects: &effects)
        }
    }

    /// All of the body was received; gives the entry if it was kept.
    ///
    /// `render` makes facts and head, now that the size is known; if it gives nil, nothing is kept.
    ///
    /// `name` is what it is called on disk, if there is one; `tags` are its further names.
    ///
    /// `place` is where it stands if that is not the key that was asked for.
    func completed(
        name: EntryName?, tags: [[UInt8]] = [], place: EntryKey? = nil,
        _ render: (UInt64) -> (facts: EntryMetadata, head: RenderedHead)?
    ) -> MemoryEntry? {
        var entry: MemoryEntry?
        update { state, effects in
            if state.lookup.fetch.phase == .storing, let made = render(state.body.endOffset) {
                entry = state.makeEntry(self, name, tags, place, made.facts, made.head)
            }
            if let entry {
                state.progress.outcome = state.isFromDisk ? .loadedFromDisk(entry) : .stored(entry)
            }
            state.lookup.fetch.completed(effects: &effects)
        }
        return entry
    }

    /// The entry that a body is which has come in one piece; nil if there is no room for it.
    func makeEntry(
        _ body: [ByteBuffer], _ name: EntryName?, tags: [[UInt8]], place: EntryKey?,
        _ facts: EntryMetadata, _ head: RenderedHead
    ) -> MemoryEntry? {
        state.withLock { state in
            state.body = BodyBuffer(isRetained: true)
            for piece in body { state.body.append(piece) }
            return state.makeEntry(self, name, tags, place, facts, head)
        }
    }

    /// The stored answer is still good, and is now `resident`, which stays stored or not.
    func storedResponseUsed(
        _ entry: MemoryEntry, isShared: Bool, isStored: Bool, isValidated: Bool = false,
        nominated: FieldNames = FieldNames(), staleFallback: FetchSnapshot.StaleFallback? = nil,
        isFromPeer: Bool = false
    ) {
        update { state, effects in
            guard !state.isFinished else { return }
            state.progress.isFromPeer = isFromPeer
            state.progress.isStored = isStored
            state.progress.staleFallback = staleFallback
            state.progress.isValidated = isValidated
            state.progress.outcome = .stored(entry)
            state.lookup.fetch.storedResponseUsed(
                isShared: isShared, nominated: nominated,
                standing: validity(
                    entry.tags, staleFallback == nil ? entry.metadata : nil, isShared: isShared),
                effects: &effects)
        }
    }

    /// What follows the body; to be told before its end.
    func trailersReceived(_ lines: [UInt8]) {
        state.withLock { $0.progress.trailers = lines }
    }

    /// An entry that is to be held against the origin was found.
    func setStaleEntry(_ stale: MemoryEntry) {
        state.withLock { $0.progress.staleEntry = stale }
    }

    /// The answer was on disk, and is now `resident`.
    func diskEntryLoaded(_ entry: MemoryEntry, nominated: FieldNames = FieldNames()) {
        update { state, effects in
            guard !state.isFinished else { return }
            state.progress.outcome = .loadedFromDisk(entry)
            state.lookup.fetch.storedResponseUsed(
                isShared: true, nominated: nominated,
                standing: validity(entry.tags, entry.metadata, isShared: true),
                effects: &effects)
        }
    }

    /// The origin spoke of another answer than the one it was asked about.
    func validatorMismatched() {
        update { $0.lookup.fetch.validatorMismatched(effects: &$1) }
    }

    /// `nominated` are the fields of requests that it depends on whether there is an answer.
    func failed(_ problem: Problem, nominated: FieldNames = FieldNames()) {
        update { state, effects in
            guard !state.isFinished else { return }
            state.progress.outcome = .failed(problem)
            state.lookup.fetch.failed(nominated: nominated, effects: &effects)
        }
    }

    func ticked(_ elapsed: Interval, isContended: Bool) {
        update { $0.lookup.fetch.ticked(elapsed, isContended: isContended, effects: &$1) }
    }

    /// The stored body with new facts and a new head; nil if there is no room for the head.
    func makeFreshenedEntry(
        _ stale: MemoryEntry, _ name: EntryName?, tags: [[UInt8]], place: EntryKey? = nil,
        _ facts: EntryMetadata, _ head: RenderedHead
    ) -> MemoryEntry? {
        let place = place ?? EntryKey(key: key, hash: hash)
        let overhead = MemoryEntry.overhead(
            keyBytes: place.key.count, headBytes: head.bytes.count,
            tagBytes: MemoryEntry.bytes(of: tags), bodyBytes: stale.body.size)
        return state.withLock { state in
            guard state.reservation.grow(by: overhead) else { return nil }
            state.reservation.transfer(overhead)
            return MemoryEntry(
                key: place.key, hash: place.hash, name: name, metadata: facts, head: head.bytes,
                layout: head.layout, tags: tags, version: invalidationVersion, body: stale.body,
                account: context.node.store.account, share: siteRequest.share)
        }
    }

    /// Whether the body, of which only the connection's end says that it is over, ends as its
    /// format says.
    var completeness: ImageCompleteness { state.withLock { $0.bodyEdges.completeness } }

    // MARK: Effects

    /// Does what the effects ask of the body and its readers; the others are for its driver.
    @discardableResult
    func update(_ step: (inout State, inout [LookupEffect]) -> Void) -> [LookupEffect] {
        var effects: [LookupEffect] = []
        let hungryLoops = state.withLock { state in
            step(&state, &effects)
            return state.apply(effects)
        }
        if hungryLoops != 0 { wake(hungryLoops) }
        for effect in effects {
            switch effect {
            case .updateFlow: context.withFetch(self) { $0.updateFlow() }
            case .abort: context.withFetch(self) { $0.cancel() }
            default: break
            }
        }
        return effects
    }

    private func wake(_ loops: UInt64) {
        var left = loops
        let contexts = context.node.contexts
        while left != 0 {
            let index = left.trailingZeroBitCount
            left &= left - 1
            // At the end of the node there are none.
            guard index < contexts.count else { return }
            contexts[index].scheduleWake(self)
        }
    }
}
