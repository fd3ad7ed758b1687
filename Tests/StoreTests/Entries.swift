import Ground
import NIOCore
import Store
import Tiers

/// Creates memory entries from a few parameters.
struct Entries {
    let store: MemoryStore

    init(
        limitBytes: Int, entriesMax: Int = 0, shardCount: Int = 4,
        marks: InvalidationIndex = InvalidationIndex()
    ) {
        store = MemoryStore(
            .init(limitBytes: limitBytes, entriesMax: entriesMax, shardCount: shardCount),
            hashing: KeyedHash(key0: 1, key1: 2), marks: marks)
    }

    static func key(_ name: String) -> [UInt8] { Array("http://origin/\(name)".utf8) }

    /// Stores an entry as a fetch does; `nil` if there is no space, or if `isJudged` and admission
    /// refuses it.
    @discardableResult
    func put(
        _ path: String, bytes: Int, name: EntryName? = nil, marker: UInt8 = 0,
        flags: EntryFlags = [], share: MemoryShare? = nil, tags: [[UInt8]] = [],
        version: InvalidationVersion? = nil, isJudged: Bool = false
    ) -> MemoryEntry? {
        let made = make(
            path, bytes: bytes, name: name, marker: marker, flags: flags, share: share,
            tags: tags, version: version, isJudged: isJudged)
        return made.flatMap { store.insert($0) ? $0 : nil }
    }

    /// Makes the same entry without storing it.
    func make(
        _ path: String, bytes: Int, name: EntryName? = nil, marker: UInt8 = 0,
        flags: EntryFlags = [], share: MemoryShare? = nil, tags: [[UInt8]] = [],
        version: InvalidationVersion? = nil, isJudged: Bool = false
    ) -> MemoryEntry? {
        let key = Self.key(path)
        let hash = store.hash(key.span, 0..<key.count)
        let capacity = BodyLayout.capacity(UInt64(bytes))
        let overhead = MemoryEntry.overhead(
            keyBytes: key.count, headBytes: 0, tagBytes: MemoryEntry.bytes(of: tags),
            bodyBytes: UInt64(bytes))
        let reservation = FetchReservation(store)
        reservation.admissionHash = isJudged ? hash : nil
        guard reservation.grow(by: capacity + overhead) else { return nil }
        var body = BodyBuffer(isRetained: true)
        body.append(ByteBuffer(repeating: marker, count: bytes))
        let chunks = body.finish() ?? []
        reservation.transfer(capacity + overhead)
        let facts = EntryMetadata(
            size: UInt64(bytes), generatedAt: .zero, freshUntil: .distantFuture, flags: flags,
            lastModified: nil, date: WallTime(seconds: 0), entityTag: .empty)
        return MemoryEntry(
            key: key, hash: hash, name: name, metadata: facts,
            head: [],
            layout: HeadLayout(
                partialStart: 0, multipartStart: 0, notModifiedStart: 0, contentType: .empty),
            tags: tags, version: version ?? store.marks.version,
            body: StoredBody(
                chunks: chunks, size: UInt64(bytes), capacityBytes: capacity,
                account: store.account),
            account: store.account, share: share)
    }

    func find(_ name: String) -> MemoryEntry? {
        let key = Self.key(name)
        return store.find(key.span, 0..<key.count, hash: store.hash(key.span, 0..<key.count))
    }

    /// The number of evicted entries for each reason that occurred.
    var evictions: [EvictionCounters.Reason: UInt64] {
        let all = EvictionCounters.Reason.allCases.map { ($0, store.evictions[$0]) }
        return Dictionary(uniqueKeysWithValues: all.filter { $0.1 > 0 })
    }
}
