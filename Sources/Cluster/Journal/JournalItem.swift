import Ground

/// One thing that the journal says, with the bytes it says it in; see "Items" in <doc:Journal>.
enum JournalItem: Hashable, Sendable {
    /// With what the count of invalidations applied was.
    case record(InvalidationRecord, count: UInt64)
    case floor(StreamPosition, count: UInt64)
    /// Invalidated here alone.
    case local(Purge, count: UInt64)
    /// Of what was invalidated up to this stamp, and no file names any more, what may still cover
    /// something, as whoever keeps entries has written it: all of it in a checkpoint, behind that
    /// what was added since.
    case marks([UInt8], upTo: Stamp)
    /// Records up to these positions need not be kept.
    case dropped([StreamPosition])
    /// Nothing of these streams need be kept but these positions; in the order of retirement.
    case retired([StreamPosition])
    /// Nothing that stands before this of these streams counts any more.
    case forgotten([ProcessID])
    /// Nothing in these files counts any more.
    case gone([UInt64])
    /// What the count remembers, but for its records, which follow.
    case memory(CountedMembers.Memory, recordsCount: Int)
    case memoryRecord(CountRecord)
    /// The first item of a file; what holds from here on is said anew up to ``checkpointEnd``.
    case checkpoint(JournalCheckpoint)
    case checkpointEnd
}

/// What a new file says of those before it.
struct JournalCheckpoint: Hashable, Sendable {
    /// The files that count, and how far; ascending.
    var files: [JournalPlace] = []
    /// Nothing of these streams that stands before these places counts; by process.
    var voids: [Void] = []
    /// The greatest that anything bears, here or in files that are gone.
    var reached = Stamp.zero

    struct Void: Hashable, Sendable {
        var process: ProcessID
        var before: JournalPlace
    }
}

extension JournalItem {
    enum Kind: UInt8 {
        case record = 1
        case floor = 2
        case dropped = 3
        case retired = 4
        case forgotten = 5
        case gone = 6
        case memory = 7
        case memoryRecord = 8
        case checkpoint = 9
        case checkpointEnd = 10
        case local = 11
        case marks = 12
    }

    enum Tag {
        static let element: UInt16 = 1
        static let standing: UInt16 = 1
        static let need: UInt16 = 2
        static let void: UInt16 = 2
    }

    static let hasNeeds: UInt8 = 1

    var kind: Kind {
        switch self {
        case .record: .record
        case .floor: .floor
        case .dropped: .dropped
        case .retired: .retired
        case .forgotten: .forgotten
        case .gone: .gone
        case .memory: .memory
        case .memoryRecord: .memoryRecord
        case .checkpoint: .checkpoint
        case .checkpointEnd: .checkpointEnd
        case .local: .local
        case .marks: .marks
        }
    }

    /// What stands behind an item's head.
    var content: [UInt8] {
        var writer = StructureWriter()
        switch self {
        case .record(let record, let count):
            var bytes: [UInt8] = []
            bytes.reserveCapacity(8 + record.bytesCount)
            bytes.appendLittle(count)
            return bytes + record.bytes
        case .floor(let position, let count):
            position.put(into: &writer)
            writer.put(count)
            writer.endFixedPart()
        case .dropped(let positions), .retired(let positions):
            writer.endFixedPart()
            for position in positions {
                writer.beginField(Tag.element, bytesCount: StreamPosition.bytesCount)
                position.put(into: &writer)
            }
        case .forgotten(let processes):
            writer.endFixedPart()
            for process in processes {
                writer.beginField(Tag.element, bytesCount: 16)
                writer.put(process)
            }
        case .gone(let files):
            writer.endFixedPart()
            for file in files {
                writer.beginField(Tag.element, bytesCount: 8)
                writer.put(file)
            }
        case .memory(let memory, let recordsCount): writer.put(memory, recordsCount)
        case .memoryRecord(let record): return record.writtenBytes
        case .checkpoint(let checkpoint): writer.put(checkpoint)
        case .checkpointEnd: writer.endFixedPart()
        case .local(let purge, let count):
            var bytes: [UInt8] = []
            bytes.appendLittle(count)
            return bytes + purge.writtenBytes
        case .marks(let marks, let stamp):
            var bytes: [UInt8] = []
            bytes.appendLittle(stamp.epoch)
            bytes.appendLittle(stamp.count)
            return bytes + marks
        }
        return writer.bytes
    }
}

extension CountRecord {
    /// Of a record that was written once, and can be written again.
    fileprivate var writtenBytes: [UInt8] {
        guard let bytes = try? bytes() else {
            preconditionFailure("a record of the count that the log cannot have: \(self)")
        }
        return bytes
    }
}

extension Purge {
    /// As in a record, of whose id nothing is read; what no record can say is everything.
    fileprivate var writtenBytes: [UInt8] {
        let bytes = try? Invalidation(id: [0], .purge(self)).content()
        return bytes ?? Purge.everythingSoft.writtenBytes
    }
}

extension JournalItem {
    /// What the log has written in items; those of what is remembered follow it.
    static func items(of write: LogWrite) -> [JournalItem] {
        switch write {
        case .record(let record, let count): [.record(record, count: count)]
        case .floor(let position, let count): [.floor(position, count: count)]
        case .local(let purge, let count): [.local(purge, count: count)]
        case .note(.dropped(let position)): [.dropped([position])]
        case .note(.retired(let position)): [.retired([position])]
        case .note(.forgotten(let process)): [.forgotten([process])]
        case .note(.memory(let memory)): JournalState.items(of: memory)
        }
    }
}

extension StructureWriter {
    fileprivate mutating func put(_ memory: CountedMembers.Memory, _ recordsCount: Int) {
        put(memory.joins)
        put(UInt32(recordsCount))
        put(memory.needs == nil ? 0 : JournalItem.hasNeeds)
        endFixedPart()
        if let standing = memory.standing {
            guard let bytes = try? standing.bytes() else {
                preconditionFailure("a count that cannot have come about: \(standing)")
            }
            putField(JournalItem.Tag.standing, bytes)
        }
        for position in memory.needs ?? [] {
            beginField(JournalItem.Tag.need, bytesCount: StreamPosition.bytesCount)
            position.put(into: &self)
        }
    }

    fileprivate mutating func put(_ checkpoint: JournalCheckpoint) {
        put(checkpoint.reached)
        endFixedPart()
        for place in checkpoint.files {
            beginField(JournalItem.Tag.element, bytesCount: 16)
            put(place)
        }
        for void in checkpoint.voids {
            beginField(JournalItem.Tag.void, bytesCount: 32)
            put(void.process)
            put(void.before)
        }
    }

    private mutating func put(_ place: JournalPlace) {
        put(place.file)
        put(place.offset)
    }
}
