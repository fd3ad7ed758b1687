import Ground

/// The bytes of items in a file: a head and the content, at a multiple of 8.
///
/// The head says how much of the file was synced when the item was written. So where an item does
/// not check, one that checks behind it tells whether that is damage, or the end of what was being
/// written when the node stopped.
struct JournalItemFraming {
    /// Of this file.
    private let salt: UInt64

    init(salt: UInt64) {
        self.salt = salt
    }

    /// Size in bytes.
    static let headBytes = 24

    /// Bytes that an item with this content takes.
    static func bytesCount(_ content: [UInt8]) -> Int {
        (headBytes + content.count + 7) / 8 * 8
    }

    /// Appends an item to a file of which `bytes` begin at `start` and `synced` bytes are synced.
    func append(
        _ kind: JournalItem.Kind, _ content: [UInt8], synced: Int, to bytes: inout [UInt8],
        start: Int
    ) {
        let place = bytes.count
        let seed = salt ^ UInt64(start + place)
        var head: [UInt8] = []
        head.reserveCapacity(Self.headBytes)
        head.pad(to: 12)
        head.appendLittle(UInt32(Self.headBytes + content.count))
        head.appendLittle(UInt32(synced))
        head.append(kind.rawValue)
        head.pad(to: Self.headBytes)
        let check = Self.headCheck(head.span, seed)
        for index in 0..<4 { head[8 + index] = UInt8(truncatingIfNeeded: check >> (8 * index)) }
        var sum = XXH64(seed: seed)
        sum.update(head.span.extracting(8..<Self.headBytes))
        sum.update(content.span)
        head.setLittle(sum.finish(), at: 0)
        bytes += head
        bytes += content
        bytes.pad(to: place + Self.bytesCount(content))
    }

    private static func headCheck(_ head: Span<UInt8>, _ seed: UInt64) -> UInt32 {
        let sum = XXH64.hash(head.extracting(12..<headBytes), seed: seed)
        return UInt32(truncatingIfNeeded: sum)
    }

    /// An item whose bytes check.
    struct Frame {
        /// Nil if this version does not know it.
        let kind: JournalItem.Kind?
        let content: Range<Int>
        /// So much of the file was synced when it was written.
        let synced: Int
        /// Where the next one begins.
        let end: Int
    }

    /// The item at `offset` of a file; nil if none checks there.
    func frame(_ file: Span<UInt8>, at offset: Int) -> Frame? {
        guard offset <= file.count - Self.headBytes else { return nil }
        let head = file.extracting(offset..<offset + Self.headBytes)
        let seed = salt ^ UInt64(offset)
        guard head.little32(at: 8) == Self.headCheck(head, seed) else { return nil }
        let size = Int(head.little32(at: 12))
        let end = (offset + size + 7) / 8 * 8
        guard size >= Self.headBytes, end <= file.count else { return nil }
        let whole = file.extracting(offset + 8..<offset + size)
        guard head.little64(at: 0) == XXH64.hash(whole, seed: seed) else { return nil }
        return Frame(
            kind: JournalItem.Kind(rawValue: head[20]),
            content: offset + Self.headBytes..<offset + size,
            synced: Int(head.little32(at: 16)), end: end)
    }

    /// True if something behind `offset`, where no item checks, shows that what stood there was
    /// synced.
    func wasSynced(_ file: Span<UInt8>, at offset: Int) -> Bool {
        var place = offset + 8
        while place <= file.count - Self.headBytes {
            if let found = frame(file, at: place), found.synced > offset { return true }
            place += 8
        }
        return false
    }
}
