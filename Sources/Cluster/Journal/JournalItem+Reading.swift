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
            return .marks(content.kept(16..<content.count), upTo: content.stamp(at: 0))
        case .dropped: return .dropped(try positions(content))
        case .retired: return .retired(try positions(content))
        case .forgotten:
            return .forgotten(
                try elements(content, StreamRange.processBytes).map { content.process(at: $0) })
        case .gone: return .gone(try elements(content, 8).map { content.little64(at: $0) })
        case .memory: return try memory(content)
        case .memoryRecord:
            return .memoryRecord(try CountRecord.read(content, in: .invalidations))
        case .checkpoint: return .checkpoint(try checkpoint(content))
        case .checkpointEnd:
            try PeerStructure.check(content, fixedBytes: 2, in: .invalidations)
            return .checkpointEnd
        }
    }

    private static func positions(
        _ content: Span<UInt8>
    ) throws(PeerFault) -> [StreamPosition] {
        try elements(content, StreamPosition.bytesCount).map { StreamPosition(content, at: $0) }
    }

    /// Where the elements of a list begin, which have at least `bytesCount` each.
    private static func elements(
        _ content: Span<UInt8>, _ bytesCount: Int
    ) throws(PeerFault) -> [Int] {
        var structure = try PeerStructure(content, fixedBytes: 2, in: .invalidations)
        var starts: [Int] = []
        while let field = try structure.next(content) {
            guard field.tag == Tag.element else { continue }
            try structure.require(bytesCount, of: field)
            starts.append(field.range.lowerBound)
        }
        return starts
    }

    private static func memory(_ content: Span<UInt8>) throws(PeerFault) -> JournalItem {
        var structure = try PeerStructure(content, fixedBytes: memoryBytes, in: .invalidations)
        let hasNeeds = content[14] & Self.hasNeeds != 0
        let joins = content.little64(at: 2)
        guard joins <= CountedSet.countMax else { throw .malformed(.invalidations) }
        var memory = CountedMembers.Memory(
            standing: nil, joins: joins, needs: hasNeeds ? [] : nil, records: [])
        while let field = try structure.next(content) {
            switch field.tag {
            case Tag.standing:
                memory.standing = try .read(content.extracting(field.range), in: .invalidations)
            case Tag.need:
                try structure.require(StreamPosition.bytesCount, of: field)
                memory.needs?.append(StreamPosition(content, at: field.range.lowerBound))
            default: continue
            }
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
            let start = field.range.lowerBound
            switch field.tag {
            case Tag.element:
                try structure.require(16, of: field)
                checkpoint.files.append(content.place(at: start))
            case Tag.void:
                try structure.require(32, of: field)
                checkpoint.voids.append(
                    .init(
                        process: content.process(at: start),
                        before: content.place(at: start + 16)))
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

extension StreamRange {
    /// Size of a process id in bytes.
    fileprivate static let processBytes = 16
}

extension Span<UInt8> {
    fileprivate func place(at offset: Int) -> JournalPlace {
        JournalPlace(file: little64(at: offset), offset: little64(at: offset + 8))
    }
}
