import Ground
import HTTPRules
import Serving

/// One seeded run of a `Serving.Fill` with an origin that behaves in any way and readers of any
/// speed, held to the laws of coalescing.
package struct FillSimulation {
    /// What a run can come to.
    package enum Outcome: CaseIterable, Sendable {
        case finished, failed, cut, sentAway, left, cancelled, pauses, kept, confirmed
        case misunderstood
        /// Events of the origin after the fill was over.
        case late
    }

    /// What one run reached, so that a campaign can show that it reached everything.
    package typealias Report = [Outcome: Int]

    private struct Reader {
        let id: Fill.ReaderID
        let wanted: RequestLines
        let isFirst: Bool
        var taken: UInt64 = 0
        var isDone = false
        /// Takes a step in one of so many turns.
        let slowness: Int
    }

    private static let windowBytes: UInt64 = 64
    private static let pieceBytesMax = 48
    private static let keptBytesMax: UInt64 = 400

    private static let accept = FieldNames(["accept"])

    private static func request(_ type: String) -> RequestLines {
        RequestLines(written: Array("GET / HTTP/1.1\r\nAccept: image/\(type)\r\n".utf8))
    }

    private let seed: UInt64
    private var dice: Dice
    private var fill: Fill
    private var readers: [Reader] = []
    private var answer: Fill.Answer?
    private var isPaused = false
    private var isCancelled = false
    private var isMisunderstood = false
    private var history: [String] = []
    private var report = Report()

    package init(seed: UInt64) {
        self.seed = seed
        dice = Dice(seed: seed)
        fill = Fill(
            request: Self.request("webp"), windowBytes: Self.windowBytes,
            keptBytesMax: Self.keptBytesMax, patience: .seconds(2))
    }

    /// Runs to the end.
    ///
    /// - Throws: a ``Violation`` as soon as a law does not hold.
    package mutating func run() throws -> Report {
        try join(isFirst: true)
        for _ in 0..<600 where !isOver { try turn() }
        if !isOver { try end(well: Bool.random(using: &dice)) }
        try speakLate()
        try drain()
        if case .ended = fill.phase, answer?.isKept == true { report[.kept, default: 0] += 1 }
        return report
    }

    private var isOver: Bool {
        fill.phase == .ended || fill.phase == .failed || isCancelled
    }

    private mutating func turn() throws {
        switch Int.random(in: 0..<10, using: &dice) {
        case 0: try join(isFirst: false)
        case 1...3: try originSpeaks()
        case 4: try tick()
        case 5 where Int.random(in: 0..<6, using: &dice) == 0: try leave()
        default: try readersStep()
        }
    }

    // MARK: Events

    private mutating func join(isFirst: Bool) throws {
        let type = isFirst || Bool.random(using: &dice) ? "webp" : "avif"
        let asked = Self.request(type)
        guard isFirst || fill.accepts(asked) else { return }
        let id = fill.joined(asked)
        history.append("joined \(id) wants \(type)")
        let slowness = Bool.random(using: &dice) ? 1 : Int.random(in: 2...40, using: &dice)
        readers.append(Reader(id: id, wanted: asked, isFirst: isFirst, slowness: slowness))
    }

    private mutating func originSpeaks() throws {
        if answer == nil {
            switch Int.random(in: 0..<12, using: &dice) {
            case 0: return try confirm()
            case 1: return try misunderstand()
            default: break
            }
            let answer = Fill.Answer(
                isKept: Bool.random(using: &dice),
                isShared: Int.random(in: 0..<4, using: &dice) > 0,
                nominated: Bool.random(using: &dice) ? Self.accept : FieldNames())
            self.answer = answer
            history.append("answered \(answer)")
            return try apply { $0.answered(answer, effects: &$1) }
        }
        guard !isPaused else { return }
        switch Int.random(in: 0..<40, using: &dice) {
        case 0: try end(well: true)
        case 1: try end(well: false)
        default:
            let count = Int.random(in: 1...Self.pieceBytesMax, using: &dice)
            let hasRoom = Int.random(in: 0..<40, using: &dice) > 0
            history.append("received \(count)\(hasRoom ? "" : ", no room")")
            try apply { $0.received(count, hasRoom: hasRoom, effects: &$1) }
            let held = fill.receivedBytes - fill.heldFrom
            let isBounded = held < Self.windowBytes + UInt64(Self.pieceBytesMax)
            try require(
                fill.phase != .passing || isBounded || fill.isPaused,
                "a passing fill reads on with \(held) bytes held")
        }
    }

    private mutating func end(well: Bool) throws {
        if answer == nil && well { return }
        history.append(well ? "ended" : "failed")
        try apply { well ? $0.ended(effects: &$1) : $0.failed(effects: &$1) }
    }

    /// 304 for what was asked about.
    private mutating func confirm() throws {
        let answer = Fill.Answer(
            isKept: true, isShared: Int.random(in: 0..<4, using: &dice) > 0,
            nominated: Bool.random(using: &dice) ? Self.accept : FieldNames())
        self.answer = answer
        report[.confirmed, default: 0] += 1
        history.append("confirmed \(answer)")
        try apply {
            $0.confirmed(isShared: answer.isShared, nominated: answer.nominated, effects: &$1)
        }
    }

    /// 304 for something else.
    private mutating func misunderstand() throws {
        isMisunderstood = true
        report[.misunderstood, default: 0] += 1
        history.append("misunderstood")
        try apply { $0.misunderstood(effects: &$1) }
    }

    /// What was on its way when the fill was over arrives, and changes nothing.
    private mutating func speakLate() throws {
        guard Bool.random(using: &dice), answer != nil else { return }
        let (phase, received) = (fill.phase, fill.receivedBytes)
        report[.late, default: 0] += 1
        history.append("late")
        try apply {
            $0.received(7, effects: &$1)
            $0.ended(effects: &$1)
            $0.failed(effects: &$1)
        }
        try require(fill.phase == phase, "what comes late changes \(phase) to \(fill.phase)")
        try require(fill.receivedBytes == received, "what comes late is counted")
    }

    private mutating func tick() throws {
        history.append("ticked")
        try apply { $0.ticked(.milliseconds(500), effects: &$1) }
    }

    private mutating func leave() throws {
        guard
            let index = readers.indices.filter({ !readers[$0].isDone }).randomElement(using: &dice)
        else { return }
        readers[index].isDone = true
        report[.left, default: 0] += 1
        history.append("left \(readers[index].id)")
        let id = readers[index].id
        try apply { $0.left(id, effects: &$1) }
    }

    private mutating func readersStep() throws {
        for index in readers.indices where !readers[index].isDone {
            guard Int.random(in: 0..<readers[index].slowness, using: &dice) == 0 else { continue }
            _ = try step(index)
        }
    }

    /// False if the reader was told to wait.
    private mutating func step(_ index: Int) throws -> Bool {
        let reader = readers[index]
        let step = fill.next(for: reader.id, limit: 32)
        switch step {
        case .wait: return false
        case .take(let offset, let count):
            history.append("\(reader.id) takes \(count) from \(offset)")
            try require(offset == reader.taken, "bytes out of order for \(reader.id)")
            try require(offset >= fill.heldFrom, "bytes that are no longer held for \(reader.id)")
            try require(count > 0 && count <= 32, "takes \(count) bytes")
            try checkMayServe(reader)
            readers[index].taken += UInt64(count)
            try apply { $0.advanced(reader.id, by: count, effects: &$1) }
            return true
        case .finish:
            try require(fill.phase == .ended, "finishes in \(fill.phase)")
            try require(reader.taken == fill.receivedBytes, "finishes without the whole body")
            try checkMayServe(reader)
            report[.finished, default: 0] += 1
        case .startOver(let alone):
            try require(alone == (answer?.isShared == false), "sent away for the wrong reason")
            try require(
                !reader.isFirst || isMisunderstood,
                "the request that caused the fetch is sent away")
            report[.sentAway, default: 0] += 1
        case .breakOff: report[.cut, default: 0] += 1
        case .fail:
            try require(fill.phase == .failed, "fails in \(fill.phase)")
            report[.failed, default: 0] += 1
        }
        history.append("\(reader.id) ends with \(step)")
        readers[index].isDone = true
        try apply { $0.left(reader.id, effects: &$1) }
        return true
    }

    private func checkMayServe(_ reader: Reader) throws {
        guard let answer else { throw violation("served before there is an answer") }
        try require(answer.isShared || reader.isFirst, "an answer that may not be shared is shared")
        try require(
            reader.isFirst || answer.nominated.isEmpty || reader.wanted == fill.request,
            "served with another request's variant")
    }

    /// After the end every reader must come to an end of its own, however slow it is.
    private mutating func drain() throws {
        for index in readers.indices {
            while !readers[index].isDone {
                guard try step(index) else {
                    throw violation("\(readers[index].id) waits for ever")
                }
            }
        }
        try require(fill.readerCount == 0, "\(fill.readerCount) readers left behind")
    }

    // MARK: Effects and laws

    private mutating func apply(_ event: (inout Fill, inout [LookupEffect]) -> Void) throws {
        var effects: [LookupEffect] = []
        event(&fill, &effects)
        for effect in effects {
            switch effect {
            case .pace where fill.isPaused:
                try require(!isPaused, "paused twice")
                try require(fill.phase == .passing, "a body that is kept is held back")
                isPaused = true
                report[.pauses, default: 0] += 1
            case .pace:
                try require(isPaused, "resumed without a pause")
                isPaused = false
            case .breakOff:
                try require(
                    answer?.isKept == false || fill.phase == .failed,
                    "a body that is kept is broken off")
                isCancelled = true
                report[.cancelled, default: 0] += 1
            case .wakeReaders, .dropHead, .stopKeeping: continue
            default: throw violation("the readers' machine says \(effect)")
            }
        }
        try require(fill.isPaused == isPaused, "the fill and its origin disagree about the pause")
    }

    private func require(_ holds: Bool, _ law: @autoclosure () -> String) throws {
        guard !holds else { return }
        throw violation(law())
    }

    private func violation(_ law: String) -> Violation {
        Violation(seed: seed, law: law, history: history.suffix(40))
    }
}
