import Ground
import HTTPRules
import Serving

/// A seeded run of one `Serving.Fetch` with an arbitrary origin and readers of any speed.
///
/// Checks the rules of request coalescing after every step.
package struct FetchSimulation {
    /// Situations that a run can reach.
    package enum Coverage: CaseIterable, Sendable {
        case finished, failed, truncated, restarted, left, cancelled, pauses, stored, revalidated
        case unexpectedNotModified
        /// The origin sends events after the fetch has ended.
        case late
    }

    /// The situations reached by a run, from which a campaign shows that all were reached.
    package typealias CoverageCounts = [Coverage: Int]

    private struct Reader {
        let id: Fetch.ReaderID
        let wanted: RequestFields
        let isFirst: Bool
        /// The number of body bytes that the reader has taken.
        var taken: UInt64 = 0
        var isDone = false
        /// The reader acts in one of this many turns on average.
        let slowness: Int
    }

    private static let windowBytes: UInt64 = 64
    private static let pieceBytesMax = 48
    private static let keptBytesMax: UInt64 = 400

    private static let accept = FieldNames(["accept"])

    /// Returns the fields of a request that accepts `image/` and `type`.
    private static func request(_ type: String) -> RequestFields {
        RequestFields(serialized: Array("GET / HTTP/1.1\r\nAccept: image/\(type)\r\n".utf8))
    }

    private var dice: SplitMix64
    private var fetch: Fetch
    private var readers: [Reader] = []
    private var response: Fetch.Disposition?
    private var isPaused = false
    private var isCancelled = false
    private var isUnexpectedNotModified = false
    private var history: RunHistory
    private var report = CoverageCounts()

    /// Creates a run from its seed.
    package init(seed: UInt64) {
        history = RunHistory(seed: seed, showing: 40)
        dice = SplitMix64(seed: seed)
        fetch = Fetch(
            request: Self.request("webp"), windowBytes: Self.windowBytes,
            keptBytesMax: Self.keptBytesMax, patience: .seconds(2))
    }

    /// Runs to the end.
    ///
    /// - Throws: ``Violation`` as soon as a rule is broken.
    package mutating func run() throws -> CoverageCounts {
        try join(isFirst: true)
        for _ in 0..<600 where !isOver { try takeRandomStep() }
        if !isOver { try end(well: Bool.random(using: &dice)) }
        try deliverLateEvents()
        try drain()
        if case .completed = fetch.phase, response?.isKept == true {
            report[.stored, default: 0] += 1
        }
        return report
    }

    /// True if the fetch has ended, or was cancelled.
    private var isOver: Bool {
        fetch.phase == .completed || fetch.phase == .failed || isCancelled
    }

    /// Performs a random event of readers, the origin or time.
    private mutating func takeRandomStep() throws {
        switch Int.random(in: 0..<10, using: &dice) {
        case 0: try join(isFirst: false)
        case 1...3: try stepOrigin()
        case 4: try tick()
        case 5 where Int.random(in: 0..<6, using: &dice) == 0: try leave()
        default: try stepReaders()
        }
    }

    // MARK: Events

    /// Adds a reader, unless the fetch cannot serve its request.
    private mutating func join(isFirst: Bool) throws {
        let type = isFirst || Bool.random(using: &dice) ? "webp" : "avif"
        let asked = Self.request(type)
        guard isFirst || fetch.accepts(asked) else { return }
        let id = fetch.readerJoined(asked)
        history.append("joined \(id) wants \(type)")
        let slowness = Bool.random(using: &dice) ? 1 : Int.random(in: 2...40, using: &dice)
        readers.append(Reader(id: id, wanted: asked, isFirst: isFirst, slowness: slowness))
    }

    /// Delivers the head of a response, which may be a 304; after that a piece of the body or its
    /// end, unless the origin is paused.
    private mutating func stepOrigin() throws {
        if response == nil {
            switch Int.random(in: 0..<12, using: &dice) {
            case 0: return try revalidate()
            case 1: return try receiveUnexpectedNotModified()
            default: break
            }
            let response = Fetch.Disposition(
                isKept: Bool.random(using: &dice),
                isShared: Int.random(in: 0..<4, using: &dice) > 0,
                nominated: Bool.random(using: &dice) ? Self.accept : FieldNames())
            self.response = response
            history.append("answered \(response)")
            return try apply { $0.responseHeadReceived(response, effects: &$1) }
        }
        guard !isPaused else { return }
        switch Int.random(in: 0..<40, using: &dice) {
        case 0: try end(well: true)
        case 1: try end(well: false)
        default:
            let count = Int.random(in: 1...Self.pieceBytesMax, using: &dice)
            let hasRoom = Int.random(in: 0..<40, using: &dice) > 0
            history.append("received \(count)\(hasRoom ? "" : ", no room")")
            try apply { $0.bodyReceived(count, hasRoom: hasRoom, effects: &$1) }
            let held = fetch.receivedBytes - fetch.retainedOffset
            let isBounded = held < Self.windowBytes + UInt64(Self.pieceBytesMax)
            try history.require(
                fetch.phase != .relaying || isBounded || fetch.isPaused,
                "a passing fill reads on with \(held) bytes held")
        }
    }

    /// Delivers the end of the fetch, `well` or as a failure; without a response it cannot end
    /// well.
    private mutating func end(well: Bool) throws {
        if response == nil && well { return }
        history.append(well ? "ended" : "failed")
        try apply { well ? $0.completed(effects: &$1) : $0.failed(effects: &$1) }
    }

    /// Delivers a 304 that validates the stored response.
    private mutating func revalidate() throws {
        let response = Fetch.Disposition(
            isKept: true, isShared: Int.random(in: 0..<4, using: &dice) > 0,
            nominated: Bool.random(using: &dice) ? Self.accept : FieldNames())
        self.response = response
        report[.revalidated, default: 0] += 1
        history.append("confirmed \(response)")
        try apply {
            $0.storedResponseUsed(
                isShared: response.isShared, nominated: response.nominated, effects: &$1)
        }
    }

    /// Delivers a 304 with another validator than the request's.
    private mutating func receiveUnexpectedNotModified() throws {
        isUnexpectedNotModified = true
        report[.unexpectedNotModified, default: 0] += 1
        history.append("misunderstood")
        try apply { $0.validatorMismatched(effects: &$1) }
    }

    /// Delivers events that were in transit when the fetch ended; they must change nothing.
    private mutating func deliverLateEvents() throws {
        guard Bool.random(using: &dice), response != nil else { return }
        let (phase, received) = (fetch.phase, fetch.receivedBytes)
        report[.late, default: 0] += 1
        history.append("late")
        try apply {
            $0.bodyReceived(7, effects: &$1)
            $0.completed(effects: &$1)
            $0.failed(effects: &$1)
        }
        try history.require(
            fetch.phase == phase, "what comes late changes \(phase) to \(fetch.phase)")
        try history.require(fetch.receivedBytes == received, "what comes late is counted")
    }

    /// Delivers a tick of half a second.
    private mutating func tick() throws {
        history.append("ticked")
        try apply { $0.ticked(.milliseconds(500), effects: &$1) }
    }

    /// Removes a reader that has not ended, if there is one.
    private mutating func leave() throws {
        guard
            let index = readers.indices.filter({ !readers[$0].isDone }).randomElement(using: &dice)
        else { return }
        readers[index].isDone = true
        report[.left, default: 0] += 1
        history.append("left \(readers[index].id)")
        let id = readers[index].id
        try apply { $0.readerLeft(id, effects: &$1) }
    }

    /// Performs a step of each reader that is not idle in this turn.
    private mutating func stepReaders() throws {
        for index in readers.indices where !readers[index].isDone {
            guard Int.random(in: 0..<readers[index].slowness, using: &dice) == 0 else { continue }
            _ = try step(index)
        }
    }

    /// Performs one step of a reader; returns false if it has to wait.
    private mutating func step(_ index: Int) throws -> Bool {
        let reader = readers[index]
        let step = fetch.nextStep(for: reader.id, limit: 32)
        switch step {
        case .wait: return false
        case .read(let offset, let count):
            history.append("\(reader.id) takes \(count) from \(offset)")
            try history.require(offset == reader.taken, "bytes out of order for \(reader.id)")
            try history.require(
                offset >= fetch.retainedOffset, "bytes that are no longer held for \(reader.id)")
            try history.require(count > 0 && count <= 32, "takes \(count) bytes")
            try checkMayServe(reader)
            readers[index].taken += UInt64(count)
            try apply { $0.readerAdvanced(reader.id, by: count, effects: &$1) }
            return true
        case .finish:
            try history.require(fetch.phase == .completed, "finishes in \(fetch.phase)")
            try history.require(
                reader.taken == fetch.receivedBytes, "finishes without the whole body")
            try checkMayServe(reader)
            report[.finished, default: 0] += 1
        case .restart(let alone):
            try history.require(
                alone == (response?.isShared == false), "sent away for the wrong reason")
            try history.require(
                !reader.isFirst || isUnexpectedNotModified,
                "the request that caused the fetch is sent away")
            report[.restarted, default: 0] += 1
        case .abort: report[.truncated, default: 0] += 1
        case .fail:
            try history.require(fetch.phase == .failed, "fails in \(fetch.phase)")
            report[.failed, default: 0] += 1
        }
        history.append("\(reader.id) ends with \(step)")
        readers[index].isDone = true
        try apply { $0.readerLeft(reader.id, effects: &$1) }
        return true
    }

    /// Checks that the response may be served to a reader.
    private func checkMayServe(_ reader: Reader) throws {
        guard let response else { throw history.violation("served before there is an answer") }
        try history.require(
            response.isShared || reader.isFirst, "an answer that may not be shared is shared")
        try history.require(
            reader.isFirst || response.nominated.isEmpty || reader.wanted == fetch.request,
            "served with another request's variant")
    }

    /// Checks that every reader ends after the fetch has ended, however slow it is.
    private mutating func drain() throws {
        for index in readers.indices {
            while !readers[index].isDone {
                guard try step(index) else {
                    throw history.violation("\(readers[index].id) waits for ever")
                }
            }
        }
        try history.require(fetch.readerCount == 0, "\(fetch.readerCount) readers left behind")
    }

    // MARK: Effects and rules

    /// Delivers an event to the fetch and checks its effects.
    private mutating func apply(_ event: (inout Fetch, inout [LookupEffect]) -> Void) throws {
        var effects: [LookupEffect] = []
        event(&fetch, &effects)
        for effect in effects {
            switch effect {
            case .updateFlow where fetch.isPaused:
                try history.require(!isPaused, "paused twice")
                try history.require(fetch.phase == .relaying, "a body that is kept is held back")
                isPaused = true
                report[.pauses, default: 0] += 1
            case .updateFlow:
                try history.require(isPaused, "resumed without a pause")
                isPaused = false
            case .abort:
                try history.require(
                    response?.isKept == false || fetch.phase == .failed,
                    "a body that is kept is broken off")
                isCancelled = true
                report[.cancelled, default: 0] += 1
            case .wakeReaders, .releasePrefix, .stopStoring: continue
            default: throw history.violation("the readers' machine says \(effect)")
            }
        }
        try history.require(
            fetch.isPaused == isPaused, "the fill and its origin disagree about the pause")
    }
}
