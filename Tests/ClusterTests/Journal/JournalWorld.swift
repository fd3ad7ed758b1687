import Cluster
import Ground
import Testing

/// A journal, its disk, and whoever tells it things at random.
struct JournalWorld {
    static let node = NodeID(low: 5, high: 6)

    var dice: SplitMix64
    var disk = JournalDisk()
    private(set) var journal: Journal
    private(set) var epoch: UInt64 = 1
    let settings: Journal.Settings
    /// As of what is synced.
    private(set) var model = JournalModel()
    /// Since then, each list what was to be written at once.
    private var attempts: [[LogWrite]] = []
    /// Notes that were not synced yet.
    private var notes: [LogMetadataUpdate] = []
    /// What this life has invalidated, and what it has found; and what of it is synced.
    private var marks = JournalMarks()
    private var keptMarks: Set<InvalidationVersion> = []
    /// What waits for a write that failed to be made again.
    private var unwritten: [LogWrite] = []
    private(set) var memory: VoterSetConsensus.PersistentState?
    /// Every memory that may be found.
    private var memories: Set<VoterSetConsensus.PersistentState?> = [nil]
    /// The greatest number of each stream that was written, or is to be.
    private var heads: [ProcessID: UInt64] = [:]
    private(set) var reached = InvalidationVersion.zero
    private(set) var reachedAtMost = InvalidationVersion.zero
    private var count: UInt64 = 0
    /// What is remembered was written.
    private(set) var hasRemembered = true
    /// Every record that there ever was.
    private(set) var written: Set<InvalidationRecord> = []
    /// How often what came about.
    var seen: [String: Int] = [:]

    init(seed: UInt64, settings: Journal.Settings) {
        dice = SplitMix64(seed: seed)
        self.settings = settings
        journal = Journal(node: Self.node, epoch: 1, settings: settings)
    }

    /// Small files, so that a few records fill one.
    static var small: Journal.Settings {
        var settings = Journal.Settings()
        settings.fileBytesMax = 4_096
        settings.bytesMax = 128 << 10
        return settings
    }

    // MARK: What the log says

    private func process(_ number: UInt64) -> ProcessID { ProcessID(high: 1, low: number) }

    private mutating func randomProcess() -> ProcessID {
        process(UInt64.random(in: 1...6, using: &dice))
    }

    /// Records of streams as they come, now and then with a gap, and floors.
    private mutating func randomBatch() -> [LogWrite] {
        dice.list(max: 40) { $0.next() }.map { _ in
            count += 1
            let process = randomProcess()
            marks.stamps.insert(InvalidationVersion(epoch: epoch, count: count))
            let isFloor = Int.random(in: 0..<60, using: &dice) == 0
            if Int.random(in: 0..<60, using: &dice) == 0 {
                return .localPurge(Purge(.hard, [.tag([1, 2])]), count: count)
            }
            let step = Int.random(in: 0..<12, using: &dice) == 0 ? 2 : 1
            let number = (heads[process] ?? 0) + UInt64(step)
            heads[process] = number
            guard !isFloor else {
                return .floor(StreamPosition(process: process, count: number), count: count)
            }
            let content = (0..<Int.random(in: 0...200, using: &dice)).map { _ in
                UInt8(truncatingIfNeeded: dice.next())
            }
            let name = RecordID(stream: process, number: number)
            let record = InvalidationRecord(name, content: content)
            written.insert(record)
            return .record(record, count: count)
        }
    }

    /// The log drops, retires or forgets something that is synced.
    mutating func note() {
        let waiting = Set(unwritten.compactMap { $0.record?.id.stream })
        let process = randomProcess()
        guard let head = heads[process], !waiting.contains(process) else { return }
        switch Int.random(in: 0..<8, using: &dice) {
        case 0:
            notes.append(.retired(StreamPosition(process: process, count: head)))
        case 1 where isRetired(process): notes.append(.forgotten(process))
        default:
            guard !isRetired(process) else { return }
            let lead = min(head - 1, UInt64.random(in: 0...30, using: &dice))
            notes.append(.dropped(StreamPosition(process: process, count: head - lead)))
        }
    }

    private func isRetired(_ process: ProcessID) -> Bool {
        var now = model
        for note in notes { now.take(.metadata(note)) }
        return now.retired.contains { $0.process == process }
    }

    mutating func remember() {
        let memory = VoterSetConsensus.PersistentState(
            configuration: Bool.random(using: &dice)
                ? nil : .random(using: &dice, listMax: 3),
            joinCount: UInt64.random(in: 0...9, using: &dice),
            records: (0..<Int.random(in: 0...3, using: &dice)).map { _ in
                .random(using: &dice, listMax: 2, holdsMax: 3)
            })
        self.memory = memory
        notes.append(.consensusState(memory))
        hasRemembered = false
    }

    private var isMemoryNoted: Bool { memory.map { notes.contains(.consensusState($0)) } ?? false }

    /// Nothing was given to a write that failed and not written again.
    var isSynced: Bool { attempts.isEmpty }
    /// There was no room yet for some of what was to be written.
    var isWaiting: Bool { !unwritten.isEmpty }

    // MARK: Writing

    enum End {
        case synced
        case fails
        case crashes
    }

    /// Writes what waits and what is new.
    mutating func write(_ end: End, _ batch: [LogWrite]? = nil) {
        var batch = unwritten + (batch ?? randomBatch())
        // What the disk has no room for waits.
        var effects = given(batch)
        if effects == nil {
            seen["refused", default: 0] += 1
            unwritten = batch
            giveUp()
            batch = []
            effects = given([])
        }
        guard let effects else {
            Issue.record("there is no room to make room")
            return
        }
        if isMemoryNoted { memories.insert(memory) }
        for write in batch { reachedAtMost = max(reachedAtMost, stamp(write)) }
        attempts.append(notes.map { .metadata($0) } + batch)
        let stop = end == .synced ? effects.count : Int.random(in: 0...effects.count, using: &dice)
        for (index, effect) in effects.enumerated() where index <= stop {
            if index < stop { disk.run(effect) } else { disk.fail(effect, using: &dice) }
            // What came back after a crash is deleted first.
            if case .append = effect { #expect(disk.bytesCount <= settings.bytesMax) }
        }
        seen["rotated", default: 0] += effects.count {
            if case .create = $0 { true } else { false }
        }
        seen["deleted", default: 0] += effects.count {
            if case .delete = $0 { true } else { false }
        }
        switch end {
        case .synced: synced(batch)
        case .fails:
            journal.failed()
            unwritten = batch + (unwritten.count > batch.count ? unwritten : [])
        case .crashes: restart()
        }
    }

    /// Gives the journal what waits.
    private mutating func given(_ batch: [LogWrite]) -> [JournalEffect]? {
        let marks = marks
        return journal.write(
            notes.map { .metadata($0) } + batch,
            marks: { [marks.piece(after: $0, upTo: $1)] }, using: &dice)
    }

    private mutating func synced(_ batch: [LogWrite]) {
        journal.synced()
        for write in attempts.removeLast() { model.take(write) }
        for write in batch {
            reached = max(reached, stamp(write))
            keptMarks.insert(stamp(write))
        }
        #expect(journal.latestVersion == reached)
        attempts = []
        if !batch.isEmpty { unwritten = [] }
        if isMemoryNoted { memories = [memory] }
        hasRemembered = hasRemembered || isMemoryNoted
        notes = []
        seen["synced", default: 0] += 1
    }

    private func stamp(_ write: LogWrite) -> InvalidationVersion {
        switch write {
        case .record(_, let count), .floor(_, let count), .localPurge(_, let count):
            InvalidationVersion(epoch: epoch, count: count)
        case .metadata: .zero
        }
    }

    /// The log gives up what it has to, as far as it is synced.
    private mutating func giveUp() {
        let waiting = Set(unwritten.compactMap { $0.record?.id })
        for position in journal.surplusPositions {
            let least = waiting.filter { $0.stream == position.process }.map(\.number).min()
            let last = min(position.count, (least ?? .max) - 1)
            guard last > 0, !isRetired(position.process) else { continue }
            notes.append(.dropped(StreamPosition(process: position.process, count: last)))
        }
    }

    // MARK: Starting again

    /// The power fails, and the node starts: what is found is what was synced, and some of what was
    /// being written since, in order.
    mutating func restart() {
        disk.crash(using: &dice)
        let (kept, found) = JournalRecovery.recover(disk.contents, node: Self.node)
        #expect(found.damage == [])
        let recovered = JournalModel(kept)
        #expect(recovered.records.count == kept.records.count, "a record is found twice")
        let isAllowed = allowed.contains(recovered)
        #expect(isAllowed)
        #expect(memories.contains(found.persistentState))
        #expect(found.latestVersion >= reached && found.latestVersion <= reachedAtMost)
        if recovered != model { seen["more than synced", default: 0] += 1 }
        let marks = JournalMarks(of: disk.contents, node: Self.node)
        let isKept = keptMarks.allSatisfy(marks.covers)
        #expect(isKept, "what was synced is not invalidated any more")
        (self.marks, keptMarks) = (marks, marks.stamps)
        begin(recovered, found)
    }

    private mutating func begin(_ recovered: JournalModel, _ found: JournalRecovery.Summary) {
        model = recovered
        (attempts, notes, unwritten, memories) = ([], [], [], [found.persistentState])
        (memory, hasRemembered) = (found.persistentState, true)
        (reached, reachedAtMost) = (found.latestVersion, found.latestVersion)
        epoch += 1
        count = 0
        heads = [:]
        for position in recovered.retired { heads[position.process] = position.count }
        for (process, floor) in recovered.floors { heads[process] = floor }
        for name in recovered.records.keys {
            heads[name.stream] = max(heads[name.stream] ?? 0, name.number)
        }
        journal = Journal(
            node: Self.node, epoch: epoch, settings: settings, recovered: found)
        seen["started", default: 0] += 1
    }

    /// What is synced, and after that any part of one of the attempts, from its beginning on.
    private var allowed: [JournalModel] {
        var allowed = [model]
        for steps in attempts {
            var next = model
            for step in steps {
                next.take(step)
                allowed.append(next)
            }
        }
        return allowed
    }
}
