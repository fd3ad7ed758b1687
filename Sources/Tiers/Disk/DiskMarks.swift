package import Ground

/// What must not come back, or not unasked; see "Marks" in <doc:DiskFormat>.
package struct DiskMark: Hashable, Sendable {
    /// What is covered.
    package enum Target: Hashable, Sendable {
        case entry(EntryName)
        case url([UInt8])
        /// Host and path up to a segment's boundary.
        case prefix([UInt8])
        case host([UInt8])
        case tag([UInt8])
        case everything
    }

    package var target: Target
    /// True: entries stamped before are stale; false: they are dead.
    package var isSoft: Bool
    package var stamp: Stamp

    package init(_ target: Target, isSoft: Bool, stamp: Stamp) {
        self.target = target
        self.isSoft = isSoft
        self.stamp = stamp
    }
}

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

    /// Appends the next mark.
    package mutating func append(_ mark: DiskMark, to bytes: inout [UInt8]) {
        var record: [UInt8] = []
        record.appendLittle(MarkReading.magic)
        record.appendLittle(UInt32(0))
        record.appendLittle(UInt64(0))
        record += [mark.target.number, mark.isSoft ? 1 : 0]
        record.pad(to: 24)
        record.append(mark.stamp)
        mark.target.append(to: &record)
        let size = UInt32(record.count)
        for place in 0..<4 {
            record[4 + place] = UInt8(truncatingIfNeeded: size >> UInt32(8 * place))
        }
        record.seal(at: 8, from: 16, seed: last)
        last = record.span.little64(at: 8)
        record.pad(to: (record.count + 7) / 8 * 8)
        bytes += record
    }
}

/// What a file of marks says.
package struct MarkReading: Sendable {
    /// In the order in which they were written.
    package private(set) var marks: [DiskMark] = []
    /// Nil if nothing but zeros follows the last mark; otherwise where the damage begins.
    package private(set) var damagedFrom: Int?
    /// Where the next mark goes.
    package private(set) var end = 0
    package private(set) var lastChecksum: UInt64

    static let magic: UInt32 = 0x4B52_4D4E
    private static let fixedBytes = 40

    /// Reads what follows a file's header with this `salt`.
    package init(_ bytes: Span<UInt8>, salt: UInt64) {
        lastChecksum = salt
        while let size = readNext(bytes) { end += (size + 7) / 8 * 8 }
        let isClean = (min(end, bytes.count)..<bytes.count).allSatisfy { bytes[$0] == 0 }
        damagedFrom = isClean ? nil : end
    }

    /// Takes the mark at ``end``; gives its size, or nil if there is none that checks.
    private mutating func readNext(_ bytes: Span<UInt8>) -> Int? {
        let left = bytes.count - end
        guard left >= Self.fixedBytes, bytes.little32(at: end) == Self.magic else { return nil }
        let size = Int(bytes.little32(at: end + 4))
        guard size >= Self.fixedBytes, size <= left else { return nil }
        let record = bytes.extracting(end..<end + size)
        let sum = record.little64(at: 8)
        guard sum == record.checksum(16..<size, seed: lastChecksum) else { return nil }
        lastChecksum = sum
        let target = DiskMark.Target(
            number: record[16], record.extracting(Self.fixedBytes..<size))
        let isSoft = target == nil || record[17] != 0
        marks.append(
            DiskMark(target ?? .everything, isSoft: isSoft, stamp: record.stamp(at: 24)))
        return size
    }
}

extension DiskMark.Target {
    fileprivate var number: UInt8 {
        switch self {
        case .entry: 1
        case .url: 2
        case .prefix: 3
        case .host: 4
        case .tag: 5
        case .everything: 6
        }
    }

    fileprivate func append(to bytes: inout [UInt8]) {
        switch self {
        case .entry(let name): name.append(to: &bytes)
        case .url(let text), .prefix(let text), .host(let text), .tag(let text): bytes += text
        case .everything: break
        }
    }

    /// Nil for a number that a newer version gave.
    fileprivate init?(number: UInt8, _ text: Span<UInt8>) {
        switch number {
        case 1 where text.count == EntryName.bytesCount: self = .entry(EntryName(text))
        case 2: self = .url(text.copy(0..<text.count))
        case 3: self = .prefix(text.copy(0..<text.count))
        case 4: self = .host(text.copy(0..<text.count))
        case 5: self = .tag(text.copy(0..<text.count))
        case 6: self = .everything
        default: return nil
        }
    }
}

/// The first bytes of a file of marks.
package struct MarksHeader: Hashable, Sendable {
    package var nodeID: NodeID
    /// Of two files the one with the greater generation counts.
    package var generation: UInt64
    /// Drawn anew with each generation.
    package var salt: UInt64

    package init(nodeID: NodeID, generation: UInt64, salt: UInt64) {
        self.nodeID = nodeID
        self.generation = generation
        self.salt = salt
    }

    /// Size in bytes.
    package static let bytesCount = 64

    package var bytes: [UInt8] {
        var bytes = Array("NUTHMARK".utf8)
        bytes.appendVersion()
        bytes.appendLittle(UInt64(0))
        bytes.append(nodeID)
        bytes.appendLittle(generation)
        bytes.appendLittle(salt)
        bytes.pad(to: Self.bytesCount)
        bytes.seal(at: 16, from: 24, seed: 0)
        return bytes
    }

    /// What a file that begins with these bytes says of itself.
    ///
    /// - Throws: what is wrong with it, or that it is not this node's.
    package init(_ bytes: Span<UInt8>, nodeID wanted: NodeID) throws(DiskDamage) {
        try bytes.checkStart("NUTHMARK", count: Self.bytesCount)
        guard bytes.little64(at: 16) == bytes.checksum(24..<Self.bytesCount, seed: 0) else {
            throw .checksum
        }
        nodeID = NodeID(bytes, at: 24)
        guard nodeID == wanted else { throw .otherNode }
        generation = bytes.little64(at: 40)
        salt = bytes.little64(at: 48)
    }
}
