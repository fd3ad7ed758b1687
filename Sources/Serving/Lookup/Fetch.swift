package import Ground
package import HTTPRules

/// The state of one fetch and its readers: decisions without bytes, sockets or locks.
///
/// The shell holds a `Fetch` under a lock, reports events to it, and performs the returned effects
/// after releasing the lock. Readers are the requests served from this fetch. They pull: a reader
/// calls ``nextStep(for:limit:)`` for more, and after ``ReaderStep/wait`` calls again on
/// ``LookupEffect/wakeReaders``.
///
/// A body that is stored is received at the origin's speed, so a storing fetch never waits for a
/// reader. A body that is not stored must not accumulate in memory, so a relaying fetch pauses its
/// origin as soon as the slowest reader is a window behind. A slow reader may hold up the others
/// for ``blockingTimeMax`` in all; then it is aborted and its client sees an incomplete response,
/// never one that looks complete. Readers that stand still are charged at the same time, so that a
/// thousand of them hold up the others no longer than one.
///
/// A failed or completed fetch ignores later events: data in transit when it was aborted still
/// arrives.
package struct Fetch: Sendable {
    /// The phases of a fetch.
    package enum Phase: Hashable, Sendable {
        /// The response head is not known. Any other phase may follow.
        case awaitingHead
        /// The head is known and the body is kept from its first byte. ``relaying`` follows if
        /// storage is exhausted, otherwise ``completed`` or ``failed``.
        case storing
        /// The head is known; only body bytes that some reader still needs are held. ``completed``
        /// or ``failed`` follows.
        case relaying
        /// The whole response was received. Final.
        case completed
        /// The response will not be complete. Final.
        case failed
    }

    /// The decisions about a response that are made when its head is known.
    package struct Disposition: Hashable, Sendable {
        /// True if the response may be stored and there is space for it.
        package var isKept: Bool
        /// True if every reader may receive the response; otherwise only the one that caused the
        /// fetch (RFC 9111 §3, §5.2.2.7).
        package var isShared: Bool
        /// The request fields that select this response (RFC 9111 §4.1).
        package var nominated: FieldNames
        /// The effect of invalidations since the start of its request.
        package var validity: Validity

        /// Creates a disposition from its parts.
        package init(
            isKept: Bool, isShared: Bool,
            nominated: FieldNames = FieldNames(), validity: Validity = .valid
        ) {
            self.isKept = isKept
            self.isShared = isShared
            self.nominated = nominated
            self.validity = validity
        }
    }

    /// The usability of a response after invalidations during its fetch.
    package enum Validity: Hashable, Sendable {
        /// No invalidation applies.
        case valid
        /// A soft purge applies: only the reader that caused the fetch receives the response, and
        /// all others restart.
        case mustRevalidate
        /// Purged, or too old for a node that may lack a purge: no reader receives it.
        case unusable
    }

    /// The current phase.
    package internal(set) var phase = Phase.awaitingHead
    /// The number of body bytes received.
    package internal(set) var receivedBytes: UInt64 = 0
    /// The offset of the first body byte that is still held; 0 while the whole body is kept.
    package internal(set) var retainedOffset: UInt64 = 0
    /// True while the shell must not read from the origin.
    package internal(set) var isPaused = false
    /// The number of readers that have not left.
    package var readerCount: Int { readers.count - vacantIndexes.count }
    /// The number of readers that have ever joined.
    package private(set) var totalReaderCount = 0

    /// The request fields sent to the origin; `nil` if responses do not depend on any.
    package let request: RequestFields?
    /// The request fields that earlier responses depended on, assumed for this one until its head
    /// is known.
    package let expectedNames: FieldNames
    /// The number of bytes a relaying fetch holds for its slowest reader before it pauses the
    /// origin.
    package var windowBytes: UInt64
    /// The largest body that is kept, in bytes.
    package let keptBytesMax: UInt64
    /// The total time for which a slow reader of a relaying fetch may hold up another reader.
    package let blockingTimeMax: Interval
    /// The time within which a reader of a relaying fetch must read ``contendedBytesMin`` while
    /// other requests wait for the origin.
    package let contendedStallTimeMax: Interval
    /// The number of bytes that a reader must read within ``contendedStallTimeMax``.
    static let contendedBytesMin: UInt64 = 4 << 10
    /// The time during which others have waited for the origin since the readers' progress was last
    /// checked.
    var contendedTime = Interval.zero

    /// True if the origin was asked only for the range that the first reader wants.
    package private(set) var isPart = false
    /// The limit of time and bytes without readers; `nil` for no limit.
    var unreadMax: (time: Interval, bytes: UInt64)?
    /// The time and bytes used since the last reader left.
    var unread: (time: Interval, bytes: UInt64) = (.zero, 0)
    /// The decisions about the response; `nil` until its head is known.
    var disposition: Disposition?
    var readers: [Reader] = []
    /// Indexes of ``readers`` whose reader has left.
    var vacantIndexes: [Int] = []
    /// The number of readers at ``retainedOffset``, maintained only while relaying.
    ///
    /// With it, 1,000 readers that advance in step cost one search for the new minimum, not 1,000.
    var floorReaderCount = 0

    /// Creates a fetch that has not started.
    ///
    /// - Parameters:
    ///   - request: the request fields sent to the origin; `nil` if responses do not depend on any.
    ///   - expected: the fields on which the response is expected to depend.
    ///   - windowBytes: the lead, in bytes, that a body that is not kept may have over its slowest
    ///     reader.
    ///   - keptBytesMax: the largest body that is kept, in bytes.
    ///   - patience: the value of ``blockingTimeMax``.
    ///   - contendedPatience: the value of ``contendedStallTimeMax``.
    package init(
        request: RequestFields? = nil, expected: FieldNames = FieldNames(), windowBytes: UInt64,
        keptBytesMax: UInt64, patience: Interval, contendedPatience: Interval = .seconds(5)
    ) {
        self.request = request
        self.expectedNames = expected
        self.windowBytes = windowBytes
        self.keptBytesMax = keptBytesMax
        self.blockingTimeMax = patience
        self.contendedStallTimeMax = contendedPatience
    }

    /// True if the whole response was received or the fetch has failed.
    package var isFinished: Bool { phase == .completed || phase == .failed }
    /// True unless the response is known to be for one client only.
    package var isShared: Bool { disposition?.isShared ?? true }

    /// The handle of a reader of one fetch; may be reused after the reader has left.
    package struct ReaderID: Hashable, Sendable {
        let index: Int
    }

    struct Reader: Sendable {
        enum State: Sendable {
            /// Waits for the head or reads the body.
            case reading
            /// Cannot be served from this fetch: it differs in a field of Vary, the response is not
            /// shared or was invalidated, or the source was lost.
            case mustRestart
            /// Aborted because it held up other readers or the origin.
            case aborted
            /// The slot is free.
            case vacant
        }
        var state = State.reading
        var request: RequestFields?
        var position: UInt64 = 0
        /// The position at the last tick.
        var lastPosition: UInt64 = 0
        /// The position when ``Fetch/contendedTime`` started.
        var contendedPosition: UInt64 = 0
        /// The total time for which it has held up others.
        var blockingTime = Interval.zero
        /// True if this request caused the fetch.
        var isFirst: Bool
    }
}

// MARK: - Events of the fetch

extension Fetch {
    /// Records that the head of a response with a body was received.
    ///
    /// Does nothing if the fetch was given up: the origin's response may still arrive.
    package mutating func responseHeadReceived(
        _ response: Disposition, effects: inout [LookupEffect]
    ) {
        precondition(phase == .awaitingHead || phase == .failed, "answered in \(self)")
        guard phase == .awaitingHead else { return }
        self.disposition = response
        phase = response.isKept ? .storing : .relaying
        for index in readers.indices where readers[index].state == .reading {
            if !canServe(readers[index]) { readers[index].state = .mustRestart }
        }
        effects.append(.wakeReaders)
        if phase == .relaying { countFloor() }
        abortWithoutReaders(&effects)
    }

    /// Records that `bytes` more of the body were received; without effect before the head, and
    /// once the fetch is over.
    ///
    /// If the body is kept, `hasRoom` states whether there is space for them; without space the
    /// fetch continues as ``Phase/relaying``.
    package mutating func bodyReceived(
        _ bytes: Int, hasRoom: Bool = true, effects: inout [LookupEffect]
    ) {
        guard phase == .storing || phase == .relaying else { return }
        receivedBytes += UInt64(bytes)
        if phase == .storing && (!hasRoom || receivedBytes > keptBytesMax) {
            return storageExhausted(&effects)
        }
        effects.append(.wakeReaders)
        applyUnreadLimit(.zero, UInt64(bytes), &effects)
        updateBackpressure(&effects)
    }

    /// Continues as ``Phase/relaying``, because the body cannot be kept; aborts if there are no
    /// readers.
    private mutating func storageExhausted(_ effects: inout [LookupEffect]) {
        phase = .relaying
        countFloor()
        effects.append(.stopStoring)
        effects.append(.wakeReaders)
        abortWithoutReaders(&effects)
        raiseFloor(&effects)
        updateBackpressure(&effects)
    }

    /// Records that the whole response was received; without effect if the fetch is over.
    package mutating func completed(effects: inout [LookupEffect]) {
        precondition(phase != .awaitingHead, "ended in \(self)")
        guard !isFinished else { return }
        phase = .completed
        effects.append(.wakeReaders)
    }

    /// Records that the origin confirmed the stored response that was validated (RFC 9111 §4.3.4).
    ///
    /// `isShared` and `nominated` are those of the stored response updated with the fields of the
    /// 304.
    package mutating func storedResponseUsed(
        isShared: Bool, nominated: FieldNames = FieldNames(), validity: Validity = .valid,
        effects: inout [LookupEffect]
    ) {
        responseHeadReceived(
            Disposition(
                isKept: true, isShared: isShared, nominated: nominated, validity: validity),
            effects: &effects)
        completed(effects: &effects)
    }

    /// Records a 304 for a response other than the stored one.
    ///
    /// Every reader restarts, and the next request must be unconditional (RFC 9111 §4.3.3).
    package mutating func validatorMismatched(effects: inout [LookupEffect]) {
        precondition(phase == .awaitingHead || phase == .failed, "validator mismatch in \(self)")
        lost(effects: &effects)
    }

    /// Records that only the range of the first reader is requested; all others restart.
    ///
    /// Without effect once the head is known.
    package mutating func limitedToPart(effects: inout [LookupEffect]) {
        // The fetch may have been aborted in the meantime.
        guard phase == .awaitingHead else { return }
        isPart = true
        for index in readers.indices
        where readers[index].state == .reading && !readers[index].isFirst {
            readers[index].state = .mustRestart
        }
        effects.append(.wakeReaders)
    }

    /// Records that this source cannot complete the response while another may: all readers
    /// restart.
    ///
    /// The caller must abort a reader to whose client part of the response was already sent.
    package mutating func lost(effects: inout [LookupEffect]) {
        guard !isFinished else { return }
        phase = .failed
        for index in readers.indices where readers[index].state == .reading {
            readers[index].state = .mustRestart
        }
        effects.append(.wakeReaders)
    }

    /// Records that the response will not be complete, or that there is none.
    ///
    /// Readers other than the first whose requests differ in the fields `nominated` restart: the
    /// failure is not a response to them.
    package mutating func failed(
        nominated: FieldNames = FieldNames(), effects: inout [LookupEffect]
    ) {
        guard !isFinished else { return }
        phase = .failed
        for index in readers.indices
        where readers[index].state == .reading && !readers[index].isFirst
            && !matches(readers[index].request, on: nominated)
        {
            readers[index].state = .mustRestart
        }
        effects.append(.wakeReaders)
    }
}

// MARK: - Events of the readers

extension Fetch {
    /// True if a new request may be served from this fetch: the fields that select the response
    /// must match.
    ///
    /// A fetch of a part accepts none before the head is known; afterwards, the response must be
    /// shared, valid and kept from its first byte.
    package func accepts(_ request: RequestFields?) -> Bool {
        switch phase {
        case .awaitingHead: return !isPart && matches(request, on: expectedNames)
        case .storing, .completed:
            guard let disposition, disposition.isShared, disposition.isKept,
                disposition.validity == .valid
            else {
                return false
            }
            return matches(request, on: disposition.nominated)
        case .relaying, .failed: return false
        }
    }

    /// Adds a reader for a request that this fetch serves.
    ///
    /// - Precondition: the first reader to join is the one that caused the fetch; for all later
    ///   ones, ``accepts(_:)`` has returned true.
    package mutating func readerJoined(_ request: RequestFields?) -> ReaderID {
        totalReaderCount += 1
        unread = (.zero, 0)
        let reader = Reader(request: request, isFirst: readers.isEmpty)
        if let index = vacantIndexes.popLast() {
            readers[index] = reader
            return ReaderID(index: index)
        }
        readers.append(reader)
        return ReaderID(index: readers.count - 1)
    }

    /// Returns what a reader does next; it reads at most `limit` bytes.
    package func nextStep(for id: ReaderID, limit: Int) -> ReaderStep {
        let reader = readers[id.index]
        switch reader.state {
        case .vacant: preconditionFailure("next step of a reader that left: \(self)")
        case .mustRestart: return .restart(isExclusive: disposition?.isShared == false && !isPart)
        case .aborted: return .abort
        case .reading: break
        }
        if phase == .failed { return .fail }
        let available = receivedBytes - reader.position
        if available > 0 {
            return .read(from: reader.position, bytes: Int(min(available, UInt64(limit))))
        }
        return phase == .completed ? .finish : .wait
    }

    /// Returns the offset of the next body byte for a reader.
    package func position(of id: ReaderID) -> UInt64 {
        readers[id.index].position
    }

    /// Records that a reader has read `bytes` of the body.
    package mutating func readerAdvanced(
        _ id: ReaderID, by bytes: Int, effects: inout [LookupEffect]
    ) {
        let wasAtFloor = readers[id.index].position == retainedOffset
        readers[id.index].position += UInt64(bytes)
        guard phase == .relaying, wasAtFloor, bytes > 0 else { return }
        floorReaderCount -= 1
        raiseFloor(&effects)
        updateBackpressure(&effects)
    }

    /// Removes a reader that is served or whose client has disconnected.
    ///
    /// A body that is kept is still fetched to its end, or as far as ``limitUnread(time:bytes:)``
    /// allows; one that is not kept is aborted with its last reader.
    package mutating func readerLeft(_ id: ReaderID, effects: inout [LookupEffect]) {
        let wasAtFloor =
            readers[id.index].state == .reading && readers[id.index].position == retainedOffset
        readers[id.index].state = .vacant
        vacantIndexes.append(id.index)
        abortWithoutReaders(&effects)
        guard phase == .relaying else { return }
        if wasAtFloor { floorReaderCount -= 1 }
        raiseFloor(&effects)
        updateBackpressure(&effects)
    }
}
