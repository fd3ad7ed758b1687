import Ground

/// Lists that lie in one field, element behind element.
extension StructureWriter {
    /// Puts a list of ids unless it is empty.
    mutating func putField(_ tag: UInt16, nodes: [NodeID]) {
        guard !nodes.isEmpty else { return }
        beginField(tag, bytesCount: nodes.count * NodeID.bytesCount)
        for node in nodes { put(node) }
    }

    /// Puts a list of positions unless it is empty.
    mutating func putField(_ tag: UInt16, positions: some Collection<StreamPosition>) {
        guard !positions.isEmpty else { return }
        beginField(tag, bytesCount: positions.count * StreamPosition.bytesCount)
        for position in positions { position.put(into: &self) }
    }
}

extension PeerStructure {
    /// The ids that `field` is, at least one and at most `countMax`.
    func nodes(
        _ bytes: Span<UInt8>, _ field: Field, countMax: Int
    ) throws(PeerFault) -> [NodeID] {
        try starts(field, NodeID.bytesCount, countMax).map { NodeID(bytes, at: $0) }
    }

    /// The positions that `field` is, at least one and at most `countMax`.
    func positions(
        _ bytes: Span<UInt8>, _ field: Field, countMax: Int
    ) throws(PeerFault) -> [StreamPosition] {
        try starts(field, StreamPosition.bytesCount, countMax).map {
            StreamPosition(bytes, at: $0)
        }
    }

    /// Where the elements of a list begin.
    private func starts(
        _ field: Field, _ elementBytes: Int, _ countMax: Int
    ) throws(PeerFault) -> StrideTo<Int> {
        let (count, rest) = field.range.count.quotientAndRemainder(dividingBy: elementBytes)
        guard rest == 0, count > 0 else { throw .malformed(kind) }
        guard count <= countMax else { throw .tooLong(.list) }
        return stride(
            from: field.range.lowerBound, to: field.range.upperBound, by: elementBytes)
    }
}
