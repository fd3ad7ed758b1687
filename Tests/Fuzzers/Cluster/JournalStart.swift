import Cluster
import Ground

/// A record, compared by the hash of its content.
struct RecordPrint: Hashable {
    let name: RecordID
    let hash: UInt64

    init(_ record: InvalidationRecord) {
        name = record.id
        hash = record.hash
    }
}

/// The recovery of a journal's files.
struct JournalStart {
    /// The node of the page's test vector.
    static let node = NodeID(low: 1, high: 0)

    let kept: PersistedLog
    let found: JournalRecovery.Summary
    private let files: [UInt64: [UInt8]]

    init(_ files: [UInt64: [UInt8]]) {
        (kept, found) = JournalRecovery.recover(files, node: Self.node)
        self.files = files
    }

    /// The state that must be the same at the next start.
    struct Content: Equatable {
        let records: Set<RecordPrint>
        let floors: [StreamPosition]
        let retired: [StreamPosition]
        let persistentState: VoterSetConsensus.PersistentState?
        let latestVersion: InvalidationVersion
    }

    var content: Content {
        Content(
            records: records, floors: found.floors, retired: found.retired,
            persistentState: found.persistentState, latestVersion: found.latestVersion)
    }

    var records: Set<RecordPrint> { Set(kept.records.map(RecordPrint.init)) }

    /// Returns the position of a stream up to which no record need be kept.
    func end(of stream: ProcessID) -> UInt64 {
        (found.floors + found.retired).filter { $0.process == stream }.map(\.count).max() ?? 0
    }

    /// Checks that every record found matches its bytes, and is above what need not be kept.
    func checkRecords() {
        for record in kept.records {
            precondition(
                InvalidationRecord.read(record.bytes.span) == record,
                "a record that was found cannot be read")
            precondition(record.id.number > end(of: record.id.stream), "a void record")
            let purge = record.invalidation.purge
            precondition(purge.map { !$0.targets.isEmpty } ?? true, "a purge of nothing")
        }
    }

    /// Starts a node with the state found, and continues to write.
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
        // Without space for it nothing has happened.
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
        start.persistedLog = kept
        start.persistentState = found.persistentState
        let now = Instant(nanoseconds: 1_000_000_000)
        var exchange = InvalidationReplication(start, now: now)
        var effects: [InvalidationEffect] = []
        exchange.started(now: now, using: &dice, effects: &effects)
        for record in kept.records {
            precondition(exchange.record(record.id) != nil, "the log lacks a kept record")
        }
    }
}

/// The files of a disk that executes every effect.
struct JournalFiles {
    private(set) var contents: [UInt64: [UInt8]]

    mutating func run(_ effect: JournalEffect) {
        switch effect {
        case .create(let number): contents[number] = []
        case .append(let number, let bytes): contents[number]? += bytes
        case .sync, .syncDirectory: break
        case .delete(let number): contents[number] = nil
        }
    }
}
