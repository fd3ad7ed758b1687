import Ground

/// The encoding of items in a file: a head and the content, aligned to 8 bytes.
///
/// The head states how much of the file was synced when the item was written. So if an item fails
/// its check, a valid item behind it shows whether that is damage or an unfinished write.
struct JournalItemFraming {
    /// The salt of the file.
    private let salt: UInt64

    init(salt: UInt64) {
        self.salt = salt
    }

    /// The size of an item's head in bytes.
    static let headBytes = 24

    /// Returns the encoded size of an item with this content in bytes.
    static func bytesCount(_ content: [UInt8]) -> Int {
        (headBytes + content.count + 7) / 8 * 8
    }

    /// Appends an item to a part of a file.
    ///
    /// - Parameters:
    ///   - kind: The kind of the item.
    ///   - content: Its content.
    ///   - synced: How many bytes of the file are synced.
    ///   - bytes: Receives the item.
    ///   - start: The offset in the file at which `bytes` begins.
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

    /// An item whose checksums match.
    struct Frame {
        /// The kind; `nil` if this version does not know it.
        let kind: JournalItem.Kind?
        /// The range of the content in the file.
        let content: Range<Int>
        /// The number of bytes of the file that were synced when the item was written.
        let synced: Int
        /// The offset of the next item.
        let end: Int
    }

    /// Returns the item at `offset` of a file, or `nil` if none is valid there.
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

    /// Returns true if a valid item behind `offset` shows that the bytes at `offset` were synced.
    ///
    /// No item is valid at `offset` itself.
    func wasSynced(_ file: Span<UInt8>, at offset: Int) -> Bool {
        var place = offset + 8
        while place <= file.count - Self.headBytes {
            if let found = frame(file, at: place), found.synced > offset { return true }
            place += 8
        }
        return false
    }
}
