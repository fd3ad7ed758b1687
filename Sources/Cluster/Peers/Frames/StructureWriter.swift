import Ground

/// A writer of a structure, either alone or behind the space for a frame header.
package struct StructureWriter {
    /// All bytes written, after the space for a frame header, if any.
    private(set) var bytes: [UInt8]
    private let start: Int
    /// True if a field exceeded the maximum length.
    private var isTooLong = false

    private static let usualBytes = 224

    /// Begins a structure after `head` zero bytes; ``endFixedPart()`` fills in its size.
    init(behind head: Int = 0) {
        bytes = []
        // Covers most structures without growing.
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

    /// Ends the fixed part; fields follow.
    mutating func endFixedPart() {
        let size = UInt16(bytes.count - start)
        bytes[start] = UInt8(truncatingIfNeeded: size)
        bytes[start + 1] = UInt8(truncatingIfNeeded: size >> 8)
    }

    /// Begins a field; its value of `bytesCount` bytes must be written next.
    ///
    /// A value of more than 65,535 bytes makes ``frame(_:stream:)`` throw.
    mutating func beginField(_ tag: UInt16, bytesCount: Int) {
        isTooLong = isTooLong || bytesCount > Int(UInt16.max)
        put(tag)
        put(UInt16(truncatingIfNeeded: bytesCount))
    }

    /// Writes a field.
    mutating func putField(_ tag: UInt16, _ value: [UInt8]) {
        beginField(tag, bytesCount: value.count)
        bytes += value
    }

    /// Writes a field unless its value is empty.
    mutating func putField(_ tag: UInt16, unlessEmpty value: [UInt8]) {
        if !value.isEmpty { putField(tag, value) }
    }

    /// The number of bytes of the structure so far.
    var payloadBytes: Int { bytes.count - start }

    /// Returns the whole frame.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` if it exceeds the limit of its kind, or a field is too
    ///   long.
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
    /// The UTF-8 of the longest prefix of whole scalars within ``PeerProtocol/textBytesMax``.
    var peerText: [UInt8] { utf8Prefix(bytesMax: PeerProtocol.textBytesMax) }

    /// Returns the UTF-8 of the longest prefix of whole scalars within `bytesMax`.
    func utf8Prefix(bytesMax: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for scalar in unicodeScalars {
            let next = Array(String(scalar).utf8)
            guard bytes.count + next.count <= bytesMax else { break }
            bytes += next
        }
        return bytes
    }
}
