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
        case .consensusState: return try memory(content)
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

    private static func memory(_ content: Span<UInt8>) throws(PeerFault) -> JournalItem {
        var structure = try StructureReader(content, fixedBytes: memoryBytes, in: .invalidations)
        let joins = content.little64(at: 2)
        guard joins <= VoterSet.generationMax else { throw .malformed(.invalidations) }
        var memory = VoterSetConsensus.PersistentState(standing: nil, joins: joins, records: [])
        while let field = try structure.next(content) {
            guard field.tag == Tag.standing else { continue }
            memory.configuration = try .read(content.extracting(field.range), in: .invalidations)
        }
        return .consensusState(memory, recordsCount: Int(content.little32(at: 10)))
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
            case Tag.void:
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
