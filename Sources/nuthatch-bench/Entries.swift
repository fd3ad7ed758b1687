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
        let size = UInt64(bodyBytes)
        let capacity = BodyLayout.capacity(size)
        let overhead = Resident.overhead(
            keyBytes: key.count, headBytes: headBytes, bodyBytes: size)
        let reservation = FillReservation(store)
        guard reservation.grow(by: capacity + overhead) else { return false }
        var body = GrowingBody(isKept: true)
        body.append(ByteBuffer(repeating: 0x41, count: bodyBytes))
        guard let chunks = body.finish() else { return false }
        reservation.handOver(capacity + overhead)
        let account = store.account
        store.insert(
            Resident(
                key: key, hash: store.hash(key.span, 0..<key.count),
                facts: EntryFacts(
                    size: size, bornAt: .zero, freshUntil: .distantFuture, flags: [],
                    lastModified: nil, date: WallTime(seconds: 0), entityTag: .empty),
                head: Array(repeating: 0x42, count: headBytes),
                layout: HeadLayout(
                    partialStart: 0, multipartStart: 0, notModifiedStart: 0, contentType: .empty),
                stamp: store.marks.stamp,
                body: Body(
                    chunks: chunks, size: size, capacityBytes: capacity, account: account),
                account: account))
        return true
    }
}
