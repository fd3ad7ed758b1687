import Cluster
import Ground

/// A record, compared by the hash of its content.
struct RecordPrint: Hashable {
    let name: RecordID
    let hash: UInt64

    init(_ record: InvalidationRecord) {
        name = record.name
        hash = record.hash
    }
}

/// What a start makes of the files of a journal.
struct JournalStart {
    /// That of the page's test vector.
    static let node = NodeID(low: 1, high: 0)

    let kept: PersistedLog
    let found: JournalRecovery.Summary
    private let files: [UInt64: [UInt8]]

    init(_ files: [UInt64: [UInt8]]) {
        (kept, found) = JournalRecovery.recover(files, node: Self.node)
        self.files = files
    }

    /// All that must be the same at the next start.
    struct Content: Equatable {
        let records: Set<RecordPrint>
        let floors: [StreamPosition]
        let retired: [StreamPosition]
        let memory: VoterSetConsensus.PersistentState?
        let reached: InvalidationVersion
    }

    var content: Content {
        Content(
            records: records, floors: found.floors, retired: found.retired,
            memory: found.memory, reached: found.reached)
    }

    var records: Set<RecordPrint> { Set(kept.records.map(RecordPrint.init)) }

    /// Up to here nothing need be kept of a stream.
    func end(of stream: ProcessID) -> UInt64 {
        (found.floors + found.retired).filter { $0.process == stream }.map(\.count).max() ?? 0
    }

    /// Every record that was found is what its bytes say, and above what need not be kept.
    func checkRecords() {
        for record in kept.records {
            precondition(
                InvalidationRecord.read(record.bytes.span) == record,
                "a record that was found cannot be read")
            precondition(record.name.number > end(of: record.name.stream), "a void record")
            let purge = record.invalidation.purge
            precondition(purge.map { !$0.targets.isEmpty } ?? true, "a purge of nothing")
        }
    }

    /// A node begins with what was found, and goes on writing.
    func checkGoingOn() {
        var dice = SplitMix64(seed: 7)
        startExchange(&dice)
        let epoch = max(1, found.epoch ?? 1)
        var journal = Journal(node: Self.node, epoch: epoch, recovered: found)
        var disk = JournalFiles(contents: files)
        guard let begun = journal.write([], marks: { _, _ in [] }, using: &dice) else {
            preconditionFailure("no room for a checkpoint")
        }
        for effect in begun { disk.run(effect) }
        journal.synced()
        let again = JournalStart(disk.contents)
        precondition(again.found.damage.isEmpty, "damage in what was written anew")
        precondition(again.content == content, "another state after it was written anew")
        precondition(again.found.epoch == epoch)

        let name = RecordID(stream: ProcessID(using: &dice), number: 3)
        let record = InvalidationRecord(name, content: [1, 2, 3])
        let writes = [LogWrite.record(record, count: 9)]
        // Without room for it nothing has happened.
        guard let effects = journal.write(writes, marks: { _, _ in [] }, using: &dice) else {
            return
        }
        for effect in effects { disk.run(effect) }
        journal.synced()
        let later = JournalStart(disk.contents)
        precondition(later.found.damage.isEmpty, "damage in what was written behind it")
        precondition(
            later.records == records.union([RecordPrint(record)]),
            "records are missing that were written")
    }

    private func startExchange(_ dice: inout SplitMix64) {
        var start = InvalidationReplication.InitialState(
            node: Self.node, process: ProcessID(using: &dice), firstRound: 1)
        start.kept = kept
        start.memory = found.memory
        let now = Instant(nanoseconds: 1_000_000_000)
        var exchange = InvalidationReplication(start, now: now)
        var effects: [InvalidationEffect] = []
        exchange.started(now: now, using: &dice, effects: &effects)
        for record in kept.records {
            precondition(exchange.record(record.name) != nil, "the log lacks a kept record")
        }
    }
}

/// The files of a disk on which everything is done.
struct JournalFiles {
    private(set) var contents: [UInt64: [UInt8]]

    mutating func run(_ effect: JournalEffect) {
        switch effect {
        case .create(let number): contents[number] = []
        case .append(let number, let bytes): contents[number]? += bytes
        case .sync, .syncNames: break
        case .delete(let number): contents[number] = nil
        }
    }
}
