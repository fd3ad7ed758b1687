import Ground
import NIOCore
import Store
import Tiers

/// Puts entries into a store as a fetch does.
struct Entries {
    let store: MemoryStore

    static func key(_ number: Int) -> [UInt8] {
        Array("http://images.example/photos/\(number).jpg".utf8)
    }

    /// False if there was no room.
    func put(_ number: Int, bodyBytes: Int, headBytes: Int = 220) -> Bool {
        let key = Self.key(number)
        let reservation = FillReservation(store)
        let resident = Resident.fetched(
            key: key, hash: store.hash(key.span, 0..<key.count),
            head: Array(repeating: 0x42, count: headBytes),
            body: ByteBuffer(repeating: 0x41, count: bodyBytes), now: .zero,
            stamp: store.marks.stamp, account: store.account
        ) { bytes in
            guard reservation.grow(by: bytes) else { return false }
            reservation.handOver(bytes)
            return true
        }
        guard let resident else { return false }
        store.insert(resident)
        return true
    }
}

extension Resident {
    /// An entry as a fetch leaves it; nil if `reserve` finds no room for so many bytes.
    static func fetched(
        key: [UInt8], hash: UInt64, name: EntryName? = nil, head: [UInt8], body: ByteBuffer,
        now: Instant, stamp: Stamp, account: MemoryAccount, reserve: (Int) -> Bool
    ) -> Resident? {
        let size = UInt64(body.readableBytes)
        let capacity = BodyLayout.capacity(size)
        let overhead = Resident.overhead(
            keyBytes: key.count, headBytes: head.count, bodyBytes: size)
        var growing = GrowingBody(isKept: true)
        growing.append(body)
        guard let chunks = growing.finish(), reserve(capacity + overhead) else { return nil }
        return Resident(
            key: key, hash: hash, name: name,
            facts: EntryFacts(
                size: size, bornAt: now, freshUntil: .distantFuture, flags: [],
                lastModified: nil, date: WallTime(seconds: 0), entityTag: .empty),
            head: head,
            layout: HeadLayout(
                partialStart: 0, multipartStart: 0, notModifiedStart: 0, contentType: .empty),
            stamp: stamp,
            body: Body(chunks: chunks, size: size, capacityBytes: capacity, account: account),
            account: account)
    }
}
