import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Synchronization
import Tiers

/// One fetch in progress: the decisions of `Serving.Lookup` with the bytes and memory they concern.
///
/// Its ``LookupDriver`` brings the bytes, on the loop of the request that caused the fetch; readers
/// on any loop take them. Every event follows one pattern: lock, step the state machine, unlock,
/// run the effects.
final class ActiveFetch: Sendable {
    /// Pins the invalidation version at the start of the causing request until the fetch leaves the
    /// table.
    let versionPin: VersionPin
    /// Context of the loop on which the fetch runs.
    let context: EventLoopContext
    /// Request ID of the causing request, passed on to owners and origins.
    let correlation: RequestCorrelation
    /// The client whose quotas the fetch uses, also in the background or on behalf of a peer; `nil`
    /// for none.
    let client: QuotaHolder?
    /// The request that caused the fetch.
    let siteRequest: SiteRequest
    /// Options of the lookup.
    let options: Lookup.Options
    /// Settings at the start of the fetch; they apply until its end.
    let settings: NodeSettings
    /// The state, guarded by its lock.
    let state: Mutex<FetchState>

    /// Creates a fetch that has not started.
    ///
    /// - Parameters:
    ///   - query: the request that causes the fetch.
    ///   - stale: a stored response to revalidate, unless it was purged meanwhile; `nil` for none.
    ///   - context: the context on which the fetch runs.
    ///   - cause: the request ID to pass on.
    ///   - client: the client to charge; `nil` for none.
    ///   - expected: the fields that select stored variants of the key.
    ///   - wish: options of the lookup.
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
        // `stale` was found before the version was pinned: purges in between are not covered by it.
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
            FetchState(
                lookup: Lookup(wish, fetch), reservation: FetchReservation(context.node.store),
                progress: FetchSnapshot.Progress(staleEntry: stale),
                windowBytesMin: settings.windowBytesMin,
                unchunkedBytesMax: settings.unchunkedBytesMax))
    }

    /// Normalised key of the request.
    var key: [UInt8] { siteRequest.key }
    /// The keyed hash of ``key``.
    var hash: UInt64 { siteRequest.hash }

    /// The node's invalidation version when the causing request began.
    var invalidationVersion: InvalidationVersion { versionPin.version }

    // MARK: Readers

    /// Adds a reader for `query`; returns `nil` if this fetch cannot serve it.
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

    /// Returns the next step of a reader.
    ///
    /// After `ReaderStep.wait` the reader is woken through `context`, its own context.
    ///
    /// - Parameters:
    ///   - reader: the reader, as returned by ``join(_:)``.
    ///   - limit: maximum number of bytes to read.
    ///   - context: the context of the reader, on which it is woken.
    ///   - slices: receives the bytes to read, which the fetch retains until ``advance(_:by:)``.
    /// - Returns: the step to take; for `ReaderStep.read`, its bytes were appended to `slices`.
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

    /// Records that a reader has finished with its next `bytes` bytes, which a body that is not
    /// kept may then release.
    func advance(_ reader: Fetch.ReaderID, by bytes: Int) {
        update { $0.lookup.fetch.readerAdvanced(reader, by: bytes, effects: &$1) }
    }

    /// Returns true if the body is still being received and kept; readers of `context` are then
    /// woken at the next event.
    func awaitCompletion(on context: EventLoopContext) -> Bool {
        state.withLock { state in
            guard state.lookup.fetch.phase == .storing else { return false }
            state.waitingLoops |= 1 << UInt64(context.index)
            return true
        }
    }

    /// Removes a reader; a body that is not kept is aborted when its last reader leaves.
    func leave(_ reader: Fetch.ReaderID) {
        var isUnread = false
        update { state, effects in
            state.lookup.fetch.readerLeft(reader, effects: &effects)
            isUnread = state.isUnread
        }
        if isUnread { context.node.fetches.readersChanged(self) }
    }

    // MARK: The fetch

    /// Reserves memory for a body; returns false if there is no capacity.
    ///
    /// - Parameters:
    ///   - bytes: number of bytes to reserve, in addition to those reserved already.
    ///   - hash: keyed hash of the entry's key; if not `nil`, admission weighs the entry against
    ///     those that would be evicted for it, now and as it grows.
    /// - Returns: true if the bytes were reserved.
    func reserve(_ bytes: Int, weighedBy hash: UInt64? = nil) -> Bool {
        state.withLock { state in
            state.reservation.admissionHash = hash
            return state.reservation.grow(by: bytes)
        }
    }

    /// Reserves the window of a body that is not kept, a small one if memory is short; returns
    /// false if there is no capacity even for that.
    func openWindow() -> Bool {
        state.withLock { $0.openWindow() }
    }

    /// Records the response head, which a body follows; does nothing after the end of the fetch.
    ///
    /// - Precondition: the window is open if the body is not kept.
    /// - Parameters:
    ///   - response: the response with its rendered head.
    ///   - isShared: true if every reader may be served it.
    ///   - isStored: true if the complete response may be stored.
    ///   - nominated: request fields that select the response; readers that differ in them start
    ///     again.
    ///   - requesterResponse: the response as the causing request receives it, if different;
    ///     otherwise `nil`.
    ///   - isHitForMiss: true if later requests for the key will probably not be served from the
    ///     cache either.
    ///   - isRequesterSpecific: true if a peer has sent the response with fields for the causing
    ///     request only, and stores it without them.
    ///   - staleFallback: not `nil` if it stands in for a failed origin.
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
                    validity: validity(
                        response.tags, staleFallback == nil ? response.metadata : nil,
                        isShared: isShared)),
                effects: &effects)
        }
    }

    /// Adds a piece of the body, for which the client is charged if no reader is left; does nothing
    /// after the end of the fetch.
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

    /// Completes the body.
    ///
    /// - Parameters:
    ///   - name: the name of the entry on disk; `nil` without one.
    ///   - tags: the cache tags of the entry.
    ///   - place: the key to store under; `nil` for the request's own key.
    ///   - render: makes metadata and head, now that the size is known; if it returns `nil`,
    ///     nothing is kept.
    /// - Returns: the entry, not yet inserted; `nil` if the body is not kept or memory has no
    ///   capacity.
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

    /// Completes the fetch, unless it has ended, with a stored response, which remains valid or
    /// stands in for a failed origin.
    ///
    /// - Parameters:
    ///   - entry: the stored response to serve.
    ///   - isShared: true if every reader may be served it.
    ///   - isStored: true if `entry` is stored, and stays so.
    ///   - isValidated: true if the origin has validated it.
    ///   - nominated: request fields that select the response; readers that differ in them start
    ///     again.
    ///   - staleFallback: not `nil` if it stands in for a failed origin.
    ///   - isFromPeer: true if it comes from a peer.
    ///   - isFromDisk: true if it was loaded from disk into memory.
    func storedResponseUsed(
        _ entry: MemoryEntry, isShared: Bool, isStored: Bool, isValidated: Bool = false,
        nominated: FieldNames = FieldNames(), staleFallback: FetchSnapshot.StaleFallback? = nil,
        isFromPeer: Bool = false, isFromDisk: Bool = false
    ) {
        update { state, effects in
            guard !state.isFinished else { return }
            state.progress.isFromPeer = isFromPeer
            state.progress.isStored = isStored
            state.progress.staleFallback = staleFallback
            state.progress.isValidated = isValidated
            state.progress.outcome = isFromDisk ? .loadedFromDisk(entry) : .stored(entry)
            state.lookup.fetch.storedResponseUsed(
                isShared: isShared, nominated: nominated,
                validity: validity(
                    entry.tags, staleFallback == nil ? entry.metadata : nil, isShared: isShared),
                effects: &effects)
        }
    }

    /// Records the trailer section, as field lines; must precede the end of the body.
    func trailersReceived(_ lines: [UInt8]) {
        state.withLock { $0.progress.trailers = lines }
    }

    /// Records a stored entry to revalidate.
    func setStaleEntry(_ stale: MemoryEntry) {
        state.withLock { $0.progress.staleEntry = stale }
    }

    /// Records a 304 whose validator matches none of the stored responses; readers start again.
    func validatorMismatched() {
        update { $0.lookup.fetch.validatorMismatched(effects: &$1) }
    }

    /// Ends the fetch with `problem`, unless it has already ended.
    ///
    /// `nominated` are the request fields on which the failure depends; readers whose requests
    /// differ in them start again.
    func failed(_ problem: Problem, nominated: FieldNames = FieldNames()) {
        update { state, effects in
            guard !state.isFinished else { return }
            state.progress.outcome = .failed(problem)
            state.lookup.fetch.failed(nominated: nominated, effects: &effects)
        }
    }

    /// Applies the time limits on slow readers and on a fetch without readers; called every
    /// ``EventLoopContext/tick``.
    ///
    /// - Parameters:
    ///   - elapsed: the time since the last call.
    ///   - isContended: true if other requests wait for the origin.
    func ticked(_ elapsed: Interval, isContended: Bool) {
        update { $0.lookup.fetch.ticked(elapsed, isContended: isContended, effects: &$1) }
    }

    /// Whether a body delimited by the connection's close ends as its image format requires.
    var completeness: ImageCompleteness { state.withLock { $0.bodyEdges.completeness } }

    /// Steps the state machine under the lock, then runs the effects on the body, its readers and
    /// the flow of the source.
    ///
    /// - Parameter step: changes the state and appends the effects.
    /// - Returns: all effects; the driver runs those that start or cancel sources.
    @discardableResult
    func update(_ step: (inout FetchState, inout [LookupEffect]) -> Void) -> [LookupEffect] {
        var effects: [LookupEffect] = []
        let hungryLoops = state.withLock { state in
            step(&state, &effects)
            return state.apply(effects)
        }
        if hungryLoops != 0 { wake(hungryLoops) }
        for effect in effects {
            switch effect {
            case .updateFlow: context.fetches.perform(on: self) { $0.updateFlow() }
            case .abort: context.fetches.perform(on: self) { $0.cancel() }
            default: break
            }
        }
        return effects
    }

    /// Schedules the wake-up of readers on the given loops, a bit set.
    private func wake(_ loops: UInt64) {
        var left = loops
        let contexts = context.node.contexts
        while left != 0 {
            let index = left.trailingZeroBitCount
            left &= left - 1
            // While the node stops, there are none.
            guard index < contexts.count else { return }
            contexts[index].fetches.scheduleWake(self)
        }
    }
}
