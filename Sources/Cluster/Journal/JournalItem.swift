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

extension JournalCheckpoint.Void: FixedValue {
    static let bytesCount = 32

    init(_ bytes: Span<UInt8>, at offset: Int) {
        process = bytes.process(at: offset)
        before = JournalPlace(bytes, at: offset + 16)
    }

    func put(into writer: inout StructureWriter) {
        process.put(into: &writer)
        before.put(into: &writer)
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
        static let void: UInt16 = 2
    }

    /// What stands behind an item's head, and what the head says that it is.
    var coded: (kind: Kind, content: [UInt8]) {
        var writer = StructureWriter()
        let kind: Kind
        switch self {
        case .record(let record, let count):
            var bytes: [UInt8] = []
            bytes.reserveCapacity(8 + record.bytesCount)
            bytes.appendLittle(count)
            return (.record, bytes + record.bytes)
        case .floor(let position, let count):
            kind = .floor
            position.put(into: &writer)
            writer.put(count)
            writer.endFixedPart()
        case .dropped(let positions): return (.dropped, Self.list(positions))
        case .retired(let positions): return (.retired, Self.list(positions))
        case .forgotten(let processes): return (.forgotten, Self.list(processes))
        case .gone(let files): return (.gone, Self.list(files))
        case .memory(let memory, let recordsCount):
            kind = .memory
            writer.put(memory, recordsCount)
        case .memoryRecord(let record): return (.memoryRecord, record.writtenBytes)
        case .checkpoint(let checkpoint):
            kind = .checkpoint
            writer.put(checkpoint)
        case .checkpointEnd:
            kind = .checkpointEnd
            writer.endFixedPart()
        case .local(let purge, let count):
            var bytes: [UInt8] = []
            bytes.appendLittle(count)
            return (.local, bytes + purge.writtenBytes)
        case .marks(let marks, let stamp):
            var bytes: [UInt8] = []
            bytes.appendLittle(stamp.epoch)
            bytes.appendLittle(stamp.count)
            return (.marks, bytes + marks)
        }
        return (kind, writer.bytes)
    }

    private static func list<Value: FixedValue>(_ values: [Value]) -> [UInt8] {
        var writer = StructureWriter()
        writer.endFixedPart()
        writer.putFields(Tag.element, values)
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
        // Once a flag; see <doc:Journal>.
        put(UInt8(0))
        endFixedPart()
        if let standing = memory.standing {
            guard let bytes = try? standing.bytes() else {
                preconditionFailure("a count that cannot have come about: \(standing)")
            }
            putField(JournalItem.Tag.standing, bytes)
        }
    }

    fileprivate mutating func put(_ checkpoint: JournalCheckpoint) {
        put(checkpoint.reached)
        endFixedPart()
        putFields(JournalItem.Tag.element, checkpoint.files)
        putFields(JournalItem.Tag.void, checkpoint.voids)
    }
}
