import Ground

/// Writes a structure, behind room for the head of a frame or alone.
package struct StructureWriter {
    private(set) var bytes: [UInt8]
    private let start: Int
    /// A field was longer than can be written.
    private var isTooLong = false

    private static let usualBytes = 224

    /// Begins a structure after `head` bytes of zeros; its size is put in by ``endFixedPart()``.
    init(behind head: Int = 0) {
        bytes = []
        // Most are no longer, and do not grow.
        bytes.reserveCapacity(Self.usualBytes)
        for _ in 0..<head + 2 { bytes.append(0) }
        start = head
    }

    /// Begins the payload of a frame.
    static var payload: StructureWriter {
        StructureWriter(behind: PeerFrameHeader.bytesCount)
    }

    mutating func put(_ number: UInt8) { bytes.append(number) }
    mutating func put(_ number: UInt16) { bytes.appendLittle(number) }
    mutating func put(_ number: UInt32) { bytes.appendLittle(number) }
    mutating func put(_ number: UInt64) { bytes.appendLittle(number) }
    mutating func put(_ number: Int64) { bytes.appendLittle(UInt64(bitPattern: number)) }
    mutating func put(_ id: NodeID) { bytes.append(id) }
    mutating func put(_ name: EntryName) { name.append(to: &bytes) }

    mutating func put(_ digest: EntryDigest) {
        put(digest.first)
        put(digest.second)
    }

    mutating func put(_ process: ProcessID) {
        put(process.low)
        put(process.high)
    }

    mutating func put(_ version: InvalidationVersion) {
        put(version.epoch)
        put(version.count)
    }

    /// What was put so far is the fixed part; fields follow.
    mutating func endFixedPart() {
        let size = UInt16(bytes.count - start)
        bytes[start] = UInt8(truncatingIfNeeded: size)
        bytes[start + 1] = UInt8(truncatingIfNeeded: size >> 8)
    }

    /// Begins a field whose value has `bytesCount` bytes, to be put next.
    mutating func beginField(_ tag: UInt16, bytesCount: Int) {
        isTooLong = isTooLong || bytesCount > Int(UInt16.max)
        put(tag)
        put(UInt16(truncatingIfNeeded: bytesCount))
    }

    /// Puts a field.
    mutating func putField(_ tag: UInt16, _ value: [UInt8]) {
        beginField(tag, bytesCount: value.count)
        bytes += value
    }

    /// Puts a field unless its value is empty.
    mutating func putField(_ tag: UInt16, unlessEmpty value: [UInt8]) {
        if !value.isEmpty { putField(tag, value) }
    }

    /// Bytes so far, without those before the structure.
    var payloadBytes: Int { bytes.count - start }

    /// The whole frame.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` if it is longer than a frame may be.
    consuming func frame(
        _ kind: PeerFrameKind, stream: UInt32 = 0
    ) throws(SendError) -> [UInt8] {
        let count = payloadBytes
        guard !isTooLong, count <= kind.payloadBytesMax else { throw .tooLong(.payload) }
        let head = PeerFrameHeader(kind, stream: stream, payloadBytes: count).bytes
        for index in head.indices { bytes[index] = head[index] }
        return bytes
    }
}

extension String {
    /// The bytes of as many whole characters as fit in ``PeerProtocol/textBytesMax``.
    var peerText: [UInt8] {
        var bytes: [UInt8] = []
        for scalar in unicodeScalars {
            let next = Array(String(scalar).utf8)
            guard bytes.count + next.count <= PeerProtocol.textBytesMax else { break }
            bytes += next
        }
        return bytes
    }
}
