package import Ground
package import HTTPRules

/// One fetch from an origin and everybody who waits for it: the decisions, without bytes, sockets
/// or locks.
///
/// The shell holds a `Fetch` under a lock, tells it what happened, and afterwards, outside the
/// lock, does what it answered. Readers are the requests that are served from this fetch. They
/// pull: a reader that wants more calls ``next(for:limit:)``; one that was told to wait is called
/// again after ``LookupEffect/wakeReaders``.
///
/// Two things pull against each other. A body that is to be kept must be received at the origin's
/// speed, whatever its readers do; a body that is not kept must not pile up in memory. So a storing
/// fill never waits for a reader, and a passing fill holds back its origin as soon as the slowest
/// reader is a window behind. A slow reader may hold up the others for ``patience`` in all; then it
/// is cut (it sees a broken answer, never one that looks whole). Readers that stand still are
/// blamed together, so that a thousand of them hold nobody up for longer than one.
///
/// A fill that has failed or ended takes no notice of what the origin still says: what was on its
/// way when a fetch was broken off arrives all the same.
package struct Fetch: Sendable {
    /// Where the fetch stands.
    package enum Phase: Hashable, Sendable {
        /// Nothing of the answer is known. Can become any other phase.
        case awaitingHead
        /// The head is known and the body is kept from its first byte.
        /// Becomes ``passing`` when there is no room for the rest, ``ended`` or ``failed``.
        case storing
        /// The head is known; of the body only what some reader still needs is held. Becomes
        /// ``ended`` or ``failed``.
        case relaying
        /// All of the answer was received. Last.
        case completed
        /// There will be no whole answer. Last.
        case failed
    }

    /// What is decided about an answer when its head is known.
    package struct Disposition: Hashable, Sendable {
        /// There is room for it and the rules allow it to be kept.
        package var isKept: Bool
        /// It may go to every reader; otherwise only to the one that caused the fetch (RFC 9111 §3,
        /// §5.2.2.7).
        package var isShared: Bool
        /// The fields of the readers' requests that the answer depends on (RFC 9111 §4.1).
        package var nominated: FieldNames
        /// What has become of it since the request for it began.
        package var validity: Validity

        package init(
            isKept: Bool, isShared: Bool,
            nominated: FieldNames = FieldNames(), standing: Validity = .valid
        ) {
            self.validity = standing
            self.isKept = isKept
            self.isShared = isShared
            self.nominated = nominated
        }
    }

    /// What an answer is good for that was on its way while something was invalidated.
    package enum Validity: Hashable, Sendable {
        /// It is as good as when it was asked for.
        case valid
        /// It is to be held against the origin: the one whose request caused the fetch is given it
        /// all the same, and all others begin anew.
        case mustRevalidate
        /// It is purged, or too old for a node that may lack a purge: nobody is given it.
        case unusable
    }

    package internal(set) var phase = Phase.awaitingHead
    /// Bytes of the body received.
    package internal(set) var receivedBytes: UInt64 = 0
    /// Offset of the first byte of the body that is still held; 0 while everything is kept.
    package internal(set) var retainedOffset: UInt64 = 0
    /// True while the origin is not to be read from.
    package internal(set) var isPaused = false
    /// Readers that have not left.
    package var readerCount: Int { readers.count - vacantIndexes.count }
    /// All readers that there were.
    package private(set) var totalReaderCount = 0

    /// The request that the origin was asked with; nil if no answer depends on it.
    package let request: RequestFields?
    /// The fields that earlier answers depended on: while nothing is known of this one, it is
    /// expected to do the same.
    package let expectedNames: FieldNames
    /// Bytes that a passing fill holds for its slowest reader before it stops reading from the
    /// origin.
    package var windowBytes: UInt64
    /// A body that grows past this is not kept.
    package let keptBytesMax: UInt64
    /// How long, added up, a slow reader of a passing fill may keep another reader waiting.
    package let blockingTimeMax: Interval
    /// In which time a reader must take ``contendedBytesMin`` of a passing fill while others wait
    /// for its origin.
    package let contendedStallTimeMax: Interval
    static let contendedBytesMin: UInt64 = 4 << 10
    /// How long others have waited for the origin since readers' progress was looked at.
    var contendedTime = Interval.zero

    /// The origin is asked for what the first reader wants of the body, which may be a part of it
    /// that is nothing to others.
    package private(set) var isPart = false
    /// How much time and how many bytes a fetch is worth that nobody waits for any more; nil for
    /// all that it takes.
    var unreadMax: (time: Interval, bytes: UInt64)?
    /// What it took of both since its last reader left.
    var unread: (time: Interval, bytes: UInt64) = (.zero, 0)
    var disposition: Disposition?
    var readers: [Reader] = []
    var vacantIndexes: [Int] = []
    /// How many followers stand at ``heldFrom``; kept up only while passing, so that 1,000 readers
    /// that move in step cost one search for the new floor, not 1,000.
    var floorReaderCount = 0

    /// A fetch that is about to be made.
    ///
    /// - Parameters:
    ///   - request: what the origin is asked with; nil if no answer depends on it.
    ///   - expected: the fields that the answer is expected to depend on.
    ///   - windowBytes: how far a body that is not kept may run ahead of its slowest reader.
    ///   - keptBytesMax: the largest body that is kept.
    ///   - patience: how long in all a slow reader of a body that is not kept may hold up the
    ///     others.
    ///   - contendedPatience: how long it may take next to nothing while others wait for the
    ///     origin.
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

    /// There is the whole answer, or there will be none.
    package var isFinished: Bool { phase == .completed || phase == .failed }
    /// The answer may go to whoever asks, as far as is known.
    package var isShared: Bool { disposition?.isShared ?? true }

    /// Names a reader of one fill; not reused before it has left.
    package struct ReaderID: Hashable, Sendable {
        let index: Int
    }

    struct Reader: Sendable {
        enum State: Sendable {
            /// Waits for the head, or reads the body.
            case reading
            /// May not be served from this fetch: it differs by Vary, may not be shared, or was no
            /// answer to what was asked.
            case mustRestart
            /// Fell a window behind the others.
            case aborted
            /// The slot is free.
            case vacant
        }
        var state = State.reading
        var request: RequestFields?
        var position: UInt64 = 0
        /// Where it stood at the last tick.
        var lastPosition: UInt64 = 0
        /// Where it stood when ``Fetch/contendedTime`` began.
        var contendedPosition: UInt64 = 0
        /// How long it has kept others waiting.
        var blockingTime = Interval.zero
        /// The one whose request caused the fetch.
        var isFirst: Bool
    }
}

// MARK: - Events of the fetch

extension Fetch {
    /// The head of an answer with a body was received.
    ///
    /// One that was given up may be answered all the same: who asked hears of that later.
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

    /// `bytes` more of the body were received.
    ///
    /// `hasRoom`: there is room to keep them, if the body is kept.
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

    private mutating func storageExhausted(_ effects: inout [LookupEffect]) {
        phase = .relaying
        countFloor()
        effects.append(.stopStoring)
        effects.append(.wakeReaders)
        abortWithoutReaders(&effects)
        raiseFloor(&effects)
        updateBackpressure(&effects)
    }

    /// The answer was received to its end.
    package mutating func completed(effects: inout [LookupEffect]) {
        precondition(phase != .awaitingHead, "ended in \(self)")
        guard !isFinished else { return }
        phase = .completed
        effects.append(.wakeReaders)
    }

    /// The stored answer that the origin was asked about is still good (RFC 9111 §4.3.4).
    ///
    /// `isShared` and `nominated` are those of the stored answer with the fields of the 304.
    package mutating func storedResponseUsed(
        isShared: Bool, nominated: FieldNames = FieldNames(), standing: Validity = .valid,
        effects: inout [LookupEffect]
    ) {
        responseHeadReceived(
            Disposition(
                isKept: true, isShared: isShared, nominated: nominated, standing: standing),
            effects: &effects)
        completed(effects: &effects)
    }

    /// The origin confirmed an answer that is not the one it was asked about: every reader has to
    /// begin anew, and the next request to be made without condition (RFC 9111 §4.3.3).
    package mutating func validatorMismatched(effects: inout [LookupEffect]) {
        precondition(phase == .awaitingHead || phase == .failed, "misunderstood in \(self)")
        lost(effects: &effects)
    }

    /// The origin is asked for no more than the first reader wants: all others begin anew.
    package mutating func limitedToPart(effects: inout [LookupEffect]) {
        // It may have been given up meanwhile.
        guard phase == .awaitingHead else { return }
        isPart = true
        for index in readers.indices
        where readers[index].state == .reading && !readers[index].isFirst {
            readers[index].state = .mustRestart
        }
        effects.append(.wakeReaders)
    }

    /// The answer cannot be had to its end from where it came from, but from elsewhere: readers
    /// begin anew.
    ///
    /// One that was given part of it is broken off by whoever reads for it.
    package mutating func lost(effects: inout [LookupEffect]) {
        guard !isFinished else { return }
        phase = .failed
        for index in readers.indices where readers[index].state == .reading {
            readers[index].state = .mustRestart
        }
        effects.append(.wakeReaders)
    }

    /// The answer will not be whole, or there is none.
    ///
    /// Readers that differ from the request in the fields `nominated` begin anew: it is none for
    /// them.
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
    /// True if a request that arrives now may be served from this fetch.
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

    /// A request was found to want what this fetch brings.
    ///
    /// - Precondition: the first to join caused the fetch; later ones were told true by
    ///   ``accepts(_:)``.
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

    /// What this reader does next, taking at most `limit` bytes.
    package func nextStep(for id: ReaderID, limit: Int) -> ReaderStep {
        let reader = readers[id.index]
        switch reader.state {
        case .vacant: preconditionFailure("next for a reader that left: \(self)")
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

    /// Offset in the body of the byte that the reader wants next.
    package func position(of id: ReaderID) -> UInt64 {
        readers[id.index].position
    }

    /// The reader took `bytes` of the body.
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

    /// The reader is served, or its client is gone; a body that is kept is fetched on all the same,
    /// to its end or as far as ``limitUnread(time:bytes:)`` allows.
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
