import Ground
import NIOCore
import Store
import Tiers
import Wire

/// A version of an entry, whose bytes are all derived from its name and version.
struct KillEntry {
    let name: Int
    let version: Int

    static func key(_ name: Int) -> [UInt8] {
        Array("http://images.example/kill/\(name).jpg".utf8)
    }

    static func target(_ name: Int) -> PurgeTarget { .url(Array(URLName.name(ofKey: key(name)))) }

    static func entryName(_ name: Int) -> EntryName { EntryName(ofKey: key(name)) }

    /// Field lines of a realistic length that contain the version.
    var head: [UInt8] {
        Array("Version: \(version)\r\nPadding: \(String(repeating: "x", count: 200))\r\n".utf8)
    }

    /// Returns the version in a head; `nil` if there is none.
    static func version(ofHead head: [UInt8]) -> Int? {
        let line = String(decoding: head.prefix { $0 != 0x0D }, as: UTF8.self)
        return line.hasPrefix("Version: ") ? Int(line.dropFirst(9)) : nil
    }

    /// The body: 0 bytes to about 600 KB, most of them small; some end at the end of a chunk.
    var body: ByteBuffer {
        var dice = SplitMix64(seed: UInt64(name) << 40 ^ UInt64(version))
        let most = [64, 8_192, 8_192, 8_192, 100_000, 100_000, 600_000, 0].randomElement(
            using: &dice)
        let chunks = DiskFormat.chunkBytes * Int.random(in: 0...9, using: &dice)
        let size =
            most == 0
            ? max(0, chunks + Int.random(in: -1...1, using: &dice))
            : Int.random(in: 0...(most ?? 0), using: &dice)
        var body = ByteBufferAllocator().buffer(capacity: size + 8)
        while body.readableBytes < size { body.writeInteger(dice.next()) }
        body.moveWriterIndex(to: size)
        return body
    }

    /// Returns the entry as a fetch creates it.
    func resident(_ account: MemoryAccount, version: InvalidationVersion, now: Instant)
        -> MemoryEntry?
    {
        MemoryEntry.fetched(
            key: Self.key(name), hash: 0, name: Self.entryName(name), head: head, body: body,
            now: now, version: version, account: account, reserve: account.reserve)
    }

    /// Returns the version that a record and its body match byte for byte.
    static func version(
        _ name: Int, _ reading: DiskRecordHandle, _ chunks: [ByteBuffer]
    ) throws(KillViolation) -> Int {
        guard let version = version(ofHead: reading.record.head) else {
            throw KillViolation("entry \(name) has a head that says no version")
        }
        let entry = KillEntry(name: name, version: version)
        var left = entry.body
        var isSame = reading.record.head == entry.head && reading.record.key == key(name)
        for chunk in chunks where isSame {
            isSame = left.readSlice(length: chunk.readableBytes) == chunk
        }
        guard isSame, left.readableBytes == 0 else {
            throw KillViolation("entry \(name) has bytes that are not those of \(version)")
        }
        guard !reading.isStale else {
            let applied = reading.record.invalidationVersion
            throw KillViolation(
                "entry \(name) is \(version), of invalidation version "
                    + "\(applied.epoch).\(applied.count), and stale, though no mark made it so")
        }
        return version
    }
}

/// A violation of a law.
struct KillViolation: Error {
    let message: String

    init(_ what: String) {
        self.message = what
    }
}
