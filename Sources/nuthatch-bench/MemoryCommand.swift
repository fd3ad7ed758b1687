import ArgumentParser
import Ground
import Harness
import NIOCore
import Store
import Tiers

/// Measures the memory that an entry really uses, compared with the account.
struct MemoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "memory",
        abstract: "Prints resident bytes per entry and the bytes counted against the limit.")

    @Option(help: "Entries to store.")
    var entries = 100_000

    @Option(help: "Bytes of each body.")
    var bodyBytes = 1_000

    @Option(help: "Percent of the counted bytes that memory pressure leaves at the end.")
    var pressTo = 50

    func validate() throws {
        guard entries > 0, bodyBytes >= 0, 0...100 ~= pressTo else {
            throw ValidationError("no such number")
        }
    }

    func run() throws {
        let store = MemoryStore(.init(limitBytes: .max / 4), hashing: KeyedHash(key0: 1, key1: 2))
        let maker = SyntheticEntries(store: store)
        let before = try ProcessStatistics().residentBytes
        for number in 0..<entries { _ = maker.insert(number, bodyBytes: bodyBytes) }
        let entry = try ProcessStatistics().residentBytes - before
        let counted = store.account.usedBytes
        print("entries: \(store.count) of \(bodyBytes) bytes")
        print("resident bytes per entry: \(entry / entries)")
        print("counted bytes per entry: \(counted / entries)")
        print("chunk bytes per entry: \(BodyLayout.capacity(UInt64(bodyBytes)))")
        try measurePressure(store, residentBefore: before)
    }

    /// Measures the memory that returns to the kernel when the limit is lowered, and the time it
    /// takes.
    private func measurePressure(_ store: MemoryStore, residentBefore: Int) throws {
        let counted = store.account.usedBytes
        let full = try ProcessStatistics().residentBytes
        let clock = ContinuousClock()
        let evicting = clock.measure { store.setPressureLimit(bytes: counted / 100 * pressTo) }
        let evicted = try ProcessStatistics().residentBytes
        let returning = clock.measure { Allocator.releaseFreeMemory() }
        let freed = counted - store.account.usedBytes
        print("pressed to \(pressTo) %: \(freed >> 20) MiB evicted in \(evicting)")
        print("resident MiB less by then: \((full - evicted) >> 20)")
        let left = try ProcessStatistics().residentBytes
        print("resident MiB less after \(returning) more: \((full - left) >> 20)")
        print("resident MiB left for the tier: \((left - residentBefore) >> 20)")
    }
}

/// Generator of entries in a store, created as by a fetch.
struct SyntheticEntries {
    let store: MemoryStore

    static func key(_ number: Int) -> [UInt8] {
        Array("http://images.example/photos/\(number).jpg".utf8)
    }

    /// Inserts an entry; returns false if there is no capacity.
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
    /// Returns an entry as a fetch creates it; `nil` if `reserve` has no capacity for its bytes.
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
                size: size, generatedAt: now, freshUntil: .distantFuture, flags: [],
                lastModified: nil, date: WallTime(seconds: 0), entityTag: .empty),
            head: head,
            layout: HeadLayout(
                partialStart: 0, multipartStart: 0, notModifiedStart: 0, contentType: .empty),
            version: version,
            body: StoredBody(chunks: chunks, size: size, capacityBytes: capacity, account: account),
            account: account)
    }
}
