import Ground

/// What the journal says of streams and of the count, without the records: the same for whoever
/// writes an item and for whoever reads it.
struct JournalState: Sendable {
    /// Records up to here need not be kept, of streams that are not retired.
    private(set) var floors: [ProcessID: UInt64] = [:]
    private(set) var retired: [ProcessID: Retired] = [:]
    /// What stands before these places of these streams does not count.
    private(set) var voids: [ProcessID: JournalPlace] = [:]
    private(set) var memory: CountedMembers.Memory?
    private(set) var reached = Stamp.zero
    /// What was invalidated up to here no file names, but for ``JournalItem/marks(_:upTo:)``.
    private(set) var released = Stamp.zero
    /// Records of the count that belong to the memory that is being read.
    private var unread: (memory: CountedMembers.Memory, left: Int)?
    private var retirements: UInt64 = 0

    struct Retired: Hashable, Sendable {
        /// The last number.
        var count: UInt64
        /// Tells which was retired first.
        var turn: UInt64
    }

    /// Takes in an item that stands at `place`, written in this boot epoch.
    mutating func take(_ item: JournalItem, at place: JournalPlace, epoch: UInt64) {
        switch item {
        case .record(let record, let count): written(record.name.stream, count, epoch)
        case .floor(let position, let count):
            written(position.process, count, epoch)
            raise(position)
        case .local(_, let count): reach(count, epoch)
        case .marks(_, let stamp): release(stamp)
        case .dropped(let positions):
            for position in positions {
                revive(position.process)
                raise(position)
            }
        case .retired(let positions): for position in positions { retire(position) }
        case .forgotten(let processes):
            for process in processes {
                floors[process] = nil
                retired[process] = nil
                voids[process] = place
            }
        case .memory(let memory, let recordsCount):
            unread = (memory, recordsCount)
            endMemory()
        case .memoryRecord(let record):
            unread?.memory.records.append(record)
            unread?.left -= 1
            endMemory()
        case .checkpoint(let checkpoint):
            self = JournalState()
            reached = checkpoint.reached
            for void in checkpoint.voids { voids[void.process] = void.before }
        case .gone, .checkpointEnd: break
        }
    }

    private mutating func endMemory() {
        guard let unread, unread.left <= 0 else { return }
        memory = unread.memory
        self.unread = nil
    }

    private mutating func written(_ process: ProcessID, _ count: UInt64, _ epoch: UInt64) {
        reach(count, epoch)
        revive(process)
    }

    private mutating func reach(_ count: UInt64, _ epoch: UInt64) {
        reached = max(reached, Stamp(epoch: epoch, count: count))
    }

    /// What was invalidated up to `stamp` no file names from now on.
    mutating func release(_ stamp: Stamp) {
        released = max(released, stamp)
        reached = max(reached, stamp)
    }

    /// A stream that was retired and goes on begins behind its last number.
    private mutating func revive(_ process: ProcessID) {
        guard let last = retired.removeValue(forKey: process) else { return }
        raise(StreamPosition(process: process, count: last.count))
    }

    private mutating func raise(_ position: StreamPosition) {
        floors[position.process] = max(floors[position.process] ?? 0, position.count)
    }

    private mutating func retire(_ position: StreamPosition) {
        floors[position.process] = nil
        let before = retired[position.process]
        retirements += 1
        retired[position.process] = Retired(
            count: max(position.count, before?.count ?? 0), turn: before?.turn ?? retirements)
    }

    /// True if a record need not be kept that stands at `place`, or before it in its file.
    func isVoid(_ name: RecordName, at place: JournalPlace) -> Bool {
        if let before = voids[name.stream], place < before { return true }
        return name.number <= floors[name.stream] ?? 0
            || name.number <= retired[name.stream]?.count ?? 0
    }

    /// Places before `file` are of no interest any more.
    mutating func forgetVoids(before file: UInt64) {
        voids = voids.filter { $0.value.file >= file }
    }

    // MARK: What a checkpoint says

    /// By process.
    var floorPositions: [StreamPosition] {
        floors.map { StreamPosition(process: $0.key, count: $0.value) }
            .sorted { $0.process < $1.process }
    }

    /// In the order of retirement.
    var retiredPositions: [StreamPosition] {
        retired.sorted { $0.value.turn < $1.value.turn }
            .map { StreamPosition(process: $0.key, count: $0.value.count) }
    }

    /// All of this as the items that stand at the beginning of a file, with `marks` for what was
    /// invalidated up to ``released``.
    func items(files: [JournalPlace], marks: [[UInt8]]) -> [JournalItem] {
        let voids = voids.map { JournalCheckpoint.Void(process: $0.key, before: $0.value) }
            .sorted { $0.process < $1.process }
        var items: [JournalItem] = [
            .checkpoint(JournalCheckpoint(files: files, voids: voids, reached: reached))
        ]
        if !floors.isEmpty { items.append(.dropped(floorPositions)) }
        if !retired.isEmpty { items.append(.retired(retiredPositions)) }
        if let memory { items += Self.items(of: memory) }
        items += marks.map { .marks($0, upTo: released) }
        return items + [.checkpointEnd]
    }

    static func items(of memory: CountedMembers.Memory) -> [JournalItem] {
        var head = memory
        head.records = []
        return [.memory(head, recordsCount: memory.records.count)]
            + memory.records.map { .memoryRecord($0) }
    }
}
