import Ground
import NIOCore
import Store
import Tiers

/// Puts entries into a store as a fetch does.
struct SyntheticEntries {
    let store: MemoryStore

    static func key(_ number: Int) -> [UInt8] {
        Array("http://images.example/photos/\(number).jpg".utf8)
    }

    /// False if there was no room.
    func insert(_ number: Int, bodyBytes: Int, headBytes: Int = 220) -> Bool {
        let key = Self.key(number)
        let reservation = FetchReservation(store)
        let entry = MemoryEntry.fetched(
            key: key, hash: store.hash(key.span, 0..<key.count),
            head: Array(repeating: 0x42, count: headBytes),
            body: ByteBuffer(repeating: 0x41, count: bodyBytes), now: .zero,
            version: store.marks.version, account: store.account
        ) { bytes in
            guard reservation.grow(by: bytes) else { return false }
            reservation.transfer(bytes)
            return true
        }
        guard let entry else { return false }
        store.insert(entry)
        return true
    }
}

extension MemoryEntry {
    /// An entry as a fetch leaves it; nil if `reserve` finds no room for so many bytes.
    static func fetched(
        key: [UInt8], hash: UInt64, name: EntryName? = nil, head: [UInt8], body: ByteBuffer,
        now: Instant, version: InvalidationVersion, account: MemoryAccount, reserve: (Int) -> Bool
    ) -> MemoryEntry? {
        let size = UInt64(body.readableBytes)
        let capacity = BodyLayout.capacity(size)
        let overhead = MemoryEntry.overhead(
            keyBytes: key.count, headBytes: head.count, bodyBytes: size)
        var growing = BodyBuffer(isRetained: true)
        growing.append(body)
        guard let chunks = growing.finish(), reserve(capacity + overhead) else { return nil }
        return MemoryEntry(
            key: key, hash: hash, name: name,
            metadata: EntryMetadata(
                size: size, bornAt: now, freshUntil: .distantFuture, flags: [],
                lastModified: nil, date: WallTime(seconds: 0), entityTag: .empty),
            head: head,
            layout: HeadLayout(
                partialStart: 0, multipartStart: 0, notModifiedStart: 0, contentType: .empty),
            version: version,
            body: StoredBody(chunks: chunks, size: size, capacityBytes: capacity, account: account),
            account: account)
    }
}
