package import Ground

/// The bytes of marks in their order: each one's checksum depends on all before it, so that none
/// can be lost from the middle unseen.
package struct MarkWriter: Sendable {
    private var last: UInt64

    /// Writes the first mark of a file with this `salt`.
    package init(salt: UInt64) {
        last = salt
    }

    /// Goes on behind what `reading` has read.
    package init(after reading: MarkReading) {
        last = reading.lastChecksum
    }

    /// Size of a mark in bytes.
    package static let markBytes = 32

    /// Appends the next mark.
    package mutating func append(_ mark: StoredMark, to bytes: inout [UInt8]) {
        let start = bytes.count
        bytes.appendLittle(UInt32(0))
        bytes += [mark.kind.rawValue, mark.isSoft ? 1 : 0]
        bytes.appendLittle(mark.length)
        bytes.appendLittle(mark.hash)
        bytes.append(mark.stamp)
        last = bytes.span.checksum(start + 4..<bytes.count, seed: last)
        for place in 0..<4 {
            bytes[start + place] = UInt8(truncatingIfNeeded: last >> UInt64(8 * place))
        }
    }

    /// Appends marks in their order.
    mutating func append(_ marks: [StoredMark], to bytes: inout [UInt8]) {
        bytes.reserveCapacity(bytes.count + marks.count * Self.markBytes)
        for mark in marks { append(mark, to: &bytes) }
    }
}

/// What a file of marks says.
package struct MarkReading: Sendable {
    /// In the order in which they were written.
    package private(set) var marks: [StoredMark] = []
    /// Nil if nothing but zeros follows the last mark; otherwise where the damage begins.
    package private(set) var damagedFrom: Int?
    /// Where the next mark goes.
    package private(set) var end = 0
    package private(set) var lastChecksum: UInt64

    /// Reads what follows a file's header with this `salt`, whose marks have `markBytes` each.
    package init(_ bytes: Span<UInt8>, salt: UInt64, markBytes: Int = MarkWriter.markBytes) {
        precondition(markBytes >= MarkWriter.markBytes, "marks of \(markBytes) bytes")
        lastChecksum = salt
        while readNext(bytes, markBytes) { end += markBytes }
        let isClean = (min(end, bytes.count)..<bytes.count).allSatisfy { bytes[$0] == 0 }
        damagedFrom = isClean ? nil : end
    }

    /// Takes the mark at ``end``; false if there is none that checks.
    private mutating func readNext(_ bytes: Span<UInt8>, _ markBytes: Int) -> Bool {
        guard bytes.count - end >= markBytes else { return false }
        let record = bytes.extracting(end..<end + markBytes)
        guard record[4] != 0 else { return false }
        let sum = record.checksum(4..<markBytes, seed: lastChecksum)
        guard UInt32(truncatingIfNeeded: sum) == record.little32(at: 0) else { return false }
        lastChecksum = sum
        marks.append(StoredMark(record))
        return true
    }
}

extension StoredMark {
    /// A mark whose checksum fits; one of a kind that a newer version gave covers everything.
    fileprivate init(_ record: Span<UInt8>) {
        let stamp = record.stamp(at: 16)
        guard let kind = Kind(rawValue: record[4]) else {
            self = .unknown(before: stamp)
            return
        }
        self.init(
            kind: kind, isSoft: record[5] != 0, length: record.little16(at: 6),
            hash: record.little64(at: 8), stamp: stamp)
    }
}

/// The first bytes of a file of marks.
package struct MarksHeader: Hashable, Sendable {
    package var nodeID: NodeID
    /// Of two files the one with the greater generation counts.
    package var generation: UInt64
    /// Drawn anew with each generation.
    package var salt: UInt64
    /// Of this file, header included.
    package var fileBytes: UInt64
    /// The same in every generation.
    package var key: MarkKey
    /// Size of each mark; that of a newer minor version's may be greater.
    package private(set) var markBytes = MarkWriter.markBytes

    package init(
        nodeID: NodeID, generation: UInt64, salt: UInt64, fileBytes: UInt64, key: MarkKey
    ) {
        self.nodeID = nodeID
        self.generation = generation
        self.salt = salt
        self.fileBytes = fileBytes
        self.key = key
    }

    /// Size in bytes.
    package static let bytesCount = 128
    /// A newer version's mark may have so many bytes at most.
    private static let markBytesMax = 4096

    package var bytes: [UInt8] {
        var bytes = Array("NUTHMARK".utf8)
        bytes.appendLittle(DiskFormat.marksMajor)
        bytes.appendLittle(DiskFormat.marksMinor)
        bytes.appendLittle(UInt32(markBytes))
        bytes.appendLittle(UInt64(0))
        bytes.append(nodeID)
        for word in [generation, salt, fileBytes, key.first, key.second] {
            bytes.appendLittle(word)
        }
        bytes.pad(to: Self.bytesCount)
        bytes.seal(at: 16, from: 24, seed: UInt64(markBytes))
        return bytes
    }

    /// What a file that begins with these bytes says of itself.
    ///
    /// - Throws: what is wrong with it, or that it is not this node's.
    package init(_ bytes: Span<UInt8>, nodeID wanted: NodeID) throws(DiskDamage) {
        try bytes.checkStart("NUTHMARK", count: Self.bytesCount, major: DiskFormat.marksMajor)
        let markBytes = bytes.little32(at: 12)
        guard
            bytes.little64(at: 16)
                == bytes.checksum(24..<Self.bytesCount, seed: UInt64(markBytes)),
            markBytes >= MarkWriter.markBytes, markBytes <= Self.markBytesMax
        else { throw .checksum }
        nodeID = NodeID(bytes, at: 24)
        guard nodeID == wanted else { throw .otherNode }
        generation = try bytes.count(at: 40)
        salt = bytes.little64(at: 48)
        fileBytes = bytes.little64(at: 56)
        key = MarkKey(first: bytes.little64(at: 64), second: bytes.little64(at: 72))
        self.markBytes = Int(markBytes)
    }
}
