import Cluster
import Ground
import Testing

/// A journal and its disk under random events.
struct JournalWorld {
    static let node = NodeID(low: 5, high: 6)

    var dice: SplitMix64
    var disk = JournalDisk()
    private(set) var journal: Journal
    private(set) var epoch: UInt64 = 1
    let settings: Journal.Settings
    /// The content that is synced.
    private(set) var model = JournalModel()
    /// The batches since, each written as a whole.
    private var attempts: [[LogWrite]] = []
    /// The metadata updates that are not synced yet.
    private var notes: [LogMetadataUpdate] = []
    /// The invalidations of this run, those it found, and which are synced.
    private var marks = JournalMarks()
    private var keptMarks: Set<InvalidationVersion> = []
    /// The records that wait for another write after a failure.
    private var unwritten: [LogWrite] = []
    private(set) var memory: VoterSetConsensus.PersistentState?
    /// The persistent states that a start may find.
    private var memories: Set<VoterSetConsensus.PersistentState?> = [nil]
    /// The greatest number of each stream that was or will be written.
    private var heads: [ProcessID: UInt64] = [:]
    private(set) var reached = InvalidationVersion.zero
    private(set) var reachedAtMost = InvalidationVersion.zero
    private var count: UInt64 = 0
    /// True if the persistent state was written.
    private(set) var hasRemembered = true
    /// Every record that ever existed.
    private(set) var written: Set<InvalidationRecord> = []
    /// Counts of events by name.
    var seen: [String: Int] = [:]

    init(seed: UInt64, settings: Journal.Settings) {
        dice = SplitMix64(seed: seed)
        self.settings = settings
        journal = Journal(node: Self.node, epoch: 1, settings: settings)
    }

    /// Settings with small files that a few records fill.
    static var small: Journal.Settings {
        var settings = Journal.Settings()
        settings.fileBytesMax = 4_096
        settings.bytesMax = 128 << 10
        return settings
    }

    // MARK: Writes of the log

    private func process(_ number: UInt64) -> ProcessID { ProcessID(high: 1, low: number) }

    private mutating func randomProcess() -> ProcessID {
        process(UInt64.random(in: 1...6, using: &dice))
    }

    /// Random records, sometimes with gaps, and floors.
    private mutating func randomBatch() -> [LogWrite] {
        dice.list(max: 40) { $0.next() }.map { _ in
            count += 1
            let process = randomProcess()
            marks.versions.insert(InvalidationVersion(epoch: epoch, count: count))
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

    /// Drops, retires or forgets something that is synced.
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

    /// True if no failed write is waiting to be repeated.
    var isSynced: Bool { attempts.isEmpty }
    /// True if something could not be written for want of space.
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
        // Records that do not fit wait.
        var effects = given(batch)
        if effects == nil {
            seen["refused", default: 0] += 1
            unwritten = batch
            giveUp()
            batch = []
            effects = given([])
        }
        guard let effects else {
            Issue.record("there is no space to make space")
            return
        }
        if isMemoryNoted { memories.insert(memory) }
        for write in batch { reachedAtMost = max(reachedAtMost, version(write)) }
        attempts.append(notes.map { .metadata($0) } + batch)
        let stop = end == .synced ? effects.count : Int.random(in: 0...effects.count, using: &dice)
        for (index, effect) in effects.enumerated() where index <= stop {
            if index < stop { disk.run(effect) } else { disk.fail(effect, using: &dice) }
            // Files that reappeared after a crash are deleted first.
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

    /// Passes waiting records to the journal.
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
            reached = max(reached, version(write))
            keptMarks.insert(version(write))
        }
        #expect(journal.latestVersion == reached)
        attempts = []
        if !batch.isEmpty { unwritten = [] }
        if isMemoryNoted { memories = [memory] }
        hasRemembered = hasRemembered || isMemoryNoted
        notes = []
        seen["synced", default: 0] += 1
    }

    private func version(_ write: LogWrite) -> InvalidationVersion {
        switch write {
        case .record(_, let count), .floor(_, let count), .localPurge(_, let count):
            InvalidationVersion(epoch: epoch, count: count)
        case .metadata: .zero
        }
    }

    /// Drops the records that the journal asks for, as far as they are synced.
    private mutating func giveUp() {
        let waiting = Set(unwritten.compactMap { $0.record?.id })
        for position in journal.surplusPositions {
            let least = waiting.filter { $0.stream == position.process }.map(\.number).min()
            let last = min(position.count, (least ?? .max) - 1)
            guard last > 0, !isRetired(position.process) else { continue }
            notes.append(.dropped(StreamPosition(process: position.process, count: last)))
        }
    }

    // MARK: Restarting

    /// Cuts the power and restarts: finds everything synced, and a prefix of the writes in
    /// progress.
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
        #expect(isKept, "a synced invalidation is no longer applied")
        (self.marks, keptMarks) = (marks, marks.versions)
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

    /// The contents a start may find: everything synced, and any prefix of one attempt after it.
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
