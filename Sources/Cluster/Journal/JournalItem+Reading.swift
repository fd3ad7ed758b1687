import Ground

extension JournalItem {
    private static let floorBytes = 34
    private static let memoryBytes = 15
    private static let checkpointBytes = 18

    /// The item of this kind that the whole of `content` is, whose checksum fits.
    ///
    /// - Throws: ``PeerFault`` if it makes no sense.
    static func read(_ kind: Kind, _ content: Span<UInt8>) throws(PeerFault) -> JournalItem {
        switch kind {
        case .record:
            guard content.count >= 8,
                let record = InvalidationRecord.read(content.extracting(8..<content.count))
            else { throw .malformed(.invalidations) }
            return .record(record, count: content.little64(at: 0))
        case .floor:
            _ = try PeerStructure(content, fixedBytes: floorBytes, in: .invalidations)
            return .floor(StreamPosition(content, at: 2), count: content.little64(at: 26))
        case .local:
            guard content.count >= 8,
                let purge = Invalidation(content: content.extracting(8..<content.count)).purge
            else { throw .malformed(.invalidations) }
            return .local(purge, count: content.little64(at: 0))
        case .marks:
            guard content.count >= 16 else { throw .malformed(.invalidations) }
            return .marks(content.copy(16..<content.count), upTo: content.stamp(at: 0))
        case .dropped: return .dropped(try elements(content))
        case .retired: return .retired(try elements(content))
        case .forgotten: return .forgotten(try elements(content))
        case .gone: return .gone(try elements(content))
        case .memory: return try memory(content)
        case .memoryRecord:
            return .memoryRecord(try CountRecord.read(content, in: .invalidations))
        case .checkpoint: return .checkpoint(try checkpoint(content))
        case .checkpointEnd:
            try PeerStructure.check(content, fixedBytes: 2, in: .invalidations)
            return .checkpointEnd
        }
    }

    private static func elements<Value: FixedValue>(
        _ content: Span<UInt8>
    ) throws(PeerFault) -> [Value] {
        var structure = try PeerStructure(content, fixedBytes: 2, in: .invalidations)
        return try structure.values(content, Tag.element)
    }

    private static func memory(_ content: Span<UInt8>) throws(PeerFault) -> JournalItem {
        var structure = try PeerStructure(content, fixedBytes: memoryBytes, in: .invalidations)
        let joins = content.little64(at: 2)
        guard joins <= CountedSet.countMax else { throw .malformed(.invalidations) }
        var memory = CountedMembers.Memory(standing: nil, joins: joins, records: [])
        while let field = try structure.next(content) {
            guard field.tag == Tag.standing else { continue }
            memory.standing = try .read(content.extracting(field.range), in: .invalidations)
        }
        return .memory(memory, recordsCount: Int(content.little32(at: 10)))
    }

    private static func checkpoint(
        _ content: Span<UInt8>
    ) throws(PeerFault) -> JournalCheckpoint {
        var structure = try PeerStructure(
            content, fixedBytes: checkpointBytes, in: .invalidations)
        var checkpoint = JournalCheckpoint()
        checkpoint.reached = content.stamp(at: 2)
        while let field = try structure.next(content) {
            switch field.tag {
            case Tag.element: checkpoint.files.append(try structure.fixed(content, field))
            case Tag.void: checkpoint.voids.append(try structure.fixed(content, field))
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
