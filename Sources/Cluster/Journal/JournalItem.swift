import Ground

/// An item of the journal; see "Items" in <doc:Journal>.
enum JournalItem: Hashable, Sendable {
    /// A record with the count of invalidations applied with it.
    case record(InvalidationRecord, count: UInt64)
    /// A position up to which everything counts as applied, because all was marked soft at `count`.
    case floor(StreamPosition, count: UInt64)
    /// An invalidation that is not sent to other nodes.
    case localPurge(Purge, count: UInt64)
    /// A piece of the marks of invalidations up to a version, which files need no longer name.
    ///
    /// The marks are encoded by the store and cover only what may still affect entries. A
    /// checkpoint has all of them; later items have the additions.
    case marks([UInt8], upTo: InvalidationVersion)
    /// Positions up to which records need not be kept.
    case dropped([StreamPosition])
    /// The last positions of retired streams, in order of retirement; nothing else of them is kept.
    case retired([StreamPosition])
    /// Streams of which nothing before this item is valid.
    case forgotten([ProcessID])
    /// Numbers of files that are no longer valid.
    case filesRemoved([UInt64])
    /// The persistent consensus state without its records, which follow as separate items.
    case consensusState(VoterSetConsensus.PersistentState, recordsCount: Int)
    /// A record of the persistent consensus state.
    case consensusRecord(ConsensusRecord)
    /// The first item of a file; the complete state is repeated up to ``checkpointEnd``.
    case checkpoint(JournalCheckpoint)
    /// The end of the checkpoint.
    case checkpointEnd
}

/// The description of earlier files at the beginning of a new one.
struct JournalCheckpoint: Hashable, Sendable {
    /// The valid files with their valid sizes, ascending.
    var files: [JournalPosition] = []
    /// The streams with the positions before which their items are invalid, by process.
    var tombstones: [Tombstone] = []
    /// The greatest invalidation version in this or any earlier file, including removed ones.
    var latestVersion = InvalidationVersion.zero

    /// A stream and the position before which its items are invalid.
    struct Tombstone: Hashable, Sendable {
        var process: ProcessID
        var before: JournalPosition
    }
}

extension JournalCheckpoint.Tombstone: FixedSizeValue {
    static let bytesCount = 32

    init(_ bytes: Span<UInt8>, at offset: Int) {
        process = bytes.process(at: offset)
        before = JournalPosition(bytes, at: offset + 16)
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
        case filesRemoved = 6
        case consensusState = 7
        case consensusRecord = 8
        case checkpoint = 9
        case checkpointEnd = 10
        case localPurge = 11
        case marks = 12
    }

    enum Tag {
        static let element: UInt16 = 1
        static let configuration: UInt16 = 1
        static let tombstone: UInt16 = 2
    }

    /// The kind and content of the encoded item, without its head.
    var encoded: (kind: Kind, content: [UInt8]) {
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
        case .filesRemoved(let files): return (.filesRemoved, Self.list(files))
        case .consensusState(let state, let recordsCount):
            kind = .consensusState
            writer.put(state, recordsCount)
        case .consensusRecord(let record): return (.consensusRecord, record.encodedBytes)
        case .checkpoint(let checkpoint):
            kind = .checkpoint
            writer.put(checkpoint)
        case .checkpointEnd:
            kind = .checkpointEnd
            writer.endFixedPart()
        case .localPurge(let purge, let count):
            var bytes: [UInt8] = []
            bytes.appendLittle(count)
            return (.localPurge, bytes + purge.encodedBytes)
        case .marks(let marks, let version):
            var bytes: [UInt8] = []
            bytes.appendLittle(version.epoch)
            bytes.appendLittle(version.count)
            return (.marks, bytes + marks)
        }
        return (kind, writer.bytes)
    }

    private static func list<Value: FixedSizeValue>(_ values: [Value]) -> [UInt8] {
        var writer = StructureWriter()
        writer.endFixedPart()
        writer.putFields(Tag.element, values)
        return writer.bytes
    }
}

extension ConsensusRecord {
    /// The encoded record, which cannot be too long because it was encoded before.
    fileprivate var encodedBytes: [UInt8] {
        guard let bytes = try? bytes() else {
            preconditionFailure("a consensus record that cannot be encoded: \(self)")
        }
        return bytes
    }
}

extension Purge {
    /// The purge encoded as in a record with a dummy id.
    ///
    /// A purge that no record can hold is encoded as ``Purge/everythingSoft``.
    fileprivate var encodedBytes: [UInt8] {
        let bytes = try? Invalidation(id: [0], .purge(self)).content()
        return bytes ?? Purge.everythingSoft.encodedBytes
    }
}

extension JournalItem {
    /// Returns the items of a log write; a consensus state is followed by its records.
    static func items(of write: LogWrite) -> [JournalItem] {
        switch write {
        case .record(let record, let count): [.record(record, count: count)]
        case .floor(let position, let count): [.floor(position, count: count)]
        case .localPurge(let purge, let count): [.localPurge(purge, count: count)]
        case .metadata(.dropped(let position)): [.dropped([position])]
        case .metadata(.retired(let position)): [.retired([position])]
        case .metadata(.forgotten(let process)): [.forgotten([process])]
        case .metadata(.consensusState(let state)): JournalState.items(of: state)
        }
    }
}

extension StructureWriter {
    fileprivate mutating func put(_ state: VoterSetConsensus.PersistentState, _ recordsCount: Int) {
        put(state.joinCount)
        put(UInt32(recordsCount))
        // Formerly a flag; see <doc:Journal>.
        put(UInt8(0))
        endFixedPart()
        if let configuration = state.configuration {
            guard let bytes = try? configuration.bytes() else {
                preconditionFailure(
                    "a voter configuration that cannot be encoded: \(configuration)")
            }
            putField(JournalItem.Tag.configuration, bytes)
        }
    }

    fileprivate mutating func put(_ checkpoint: JournalCheckpoint) {
        put(checkpoint.latestVersion)
        endFixedPart()
        putFields(JournalItem.Tag.element, checkpoint.files)
        putFields(JournalItem.Tag.tombstone, checkpoint.tombstones)
    }
}

extension JournalItem {
    private static let floorBytes = 34
    private static let consensusStateBytes = 15
    private static let checkpointBytes = 18

    /// Decodes the item that occupies all of `content`, whose checksum was verified.
    ///
    /// - Throws: ``PeerFault`` if the content is malformed.
    static func read(_ kind: Kind, _ content: Span<UInt8>) throws(PeerFault) -> JournalItem {
        switch kind {
        case .record:
            guard content.count >= 8,
                let record = InvalidationRecord.read(content.extracting(8..<content.count))
            else { throw .malformed(.invalidations) }
            return .record(record, count: content.little64(at: 0))
        case .floor:
            _ = try StructureReader(content, fixedBytes: floorBytes, in: .invalidations)
            return .floor(StreamPosition(content, at: 2), count: content.little64(at: 26))
        case .localPurge:
            guard content.count >= 8,
                let purge = Invalidation(content: content.extracting(8..<content.count)).purge
            else { throw .malformed(.invalidations) }
            return .localPurge(purge, count: content.little64(at: 0))
        case .marks:
            guard content.count >= 16 else { throw .malformed(.invalidations) }
            return .marks(
                content.copy(16..<content.count), upTo: content.invalidationVersion(at: 0))
        case .dropped: return .dropped(try elements(content))
        case .retired: return .retired(try elements(content))
        case .forgotten: return .forgotten(try elements(content))
        case .filesRemoved: return .filesRemoved(try elements(content))
        case .consensusState: return try consensusState(content)
        case .consensusRecord:
            return .consensusRecord(try ConsensusRecord.read(content, in: .invalidations))
        case .checkpoint: return .checkpoint(try checkpoint(content))
        case .checkpointEnd:
            try StructureReader.validate(content, fixedBytes: 2, in: .invalidations)
            return .checkpointEnd
        }
    }

    private static func elements<Value: FixedSizeValue>(
        _ content: Span<UInt8>
    ) throws(PeerFault) -> [Value] {
        var structure = try StructureReader(content, fixedBytes: 2, in: .invalidations)
        return try structure.values(content, Tag.element)
    }

    private static func consensusState(_ content: Span<UInt8>) throws(PeerFault) -> JournalItem {
        var structure = try StructureReader(
            content, fixedBytes: consensusStateBytes, in: .invalidations)
        let joins = content.little64(at: 2)
        guard joins <= VoterSet.generationMax else { throw .malformed(.invalidations) }
        var state = VoterSetConsensus.PersistentState(
            configuration: nil, joinCount: joins, records: [])
        while let field = try structure.next(content) {
            guard field.tag == Tag.configuration else { continue }
            state.configuration = try .read(content.extracting(field.range), in: .invalidations)
        }
        return .consensusState(state, recordsCount: Int(content.little32(at: 10)))
    }

    private static func checkpoint(
        _ content: Span<UInt8>
    ) throws(PeerFault) -> JournalCheckpoint {
        var structure = try StructureReader(
            content, fixedBytes: checkpointBytes, in: .invalidations)
        var checkpoint = JournalCheckpoint()
        checkpoint.latestVersion = content.invalidationVersion(at: 2)
        while let field = try structure.next(content) {
            switch field.tag {
            case Tag.element: checkpoint.files.append(try structure.fixedSizeValue(content, field))
            case Tag.tombstone:
                checkpoint.tombstones.append(try structure.fixedSizeValue(content, field))
            default: continue
            }
        }
        let files = checkpoint.files
        guard zip(files, files.dropFirst()).allSatisfy({ $0.file < $1.file }) else {
            throw .malformed(.invalidations)
        }
        return checkpoint
    }
}
