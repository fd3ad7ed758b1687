import Foundation
import Ground
import NIOCore
import Store
import Tiers
import Wire

/// A disk log in a directory, filled with responses that are derived from their numbers.
final class BenchDiskLog {
    let log: DiskLog
    let figures: DiskCounters
    private let directory: NodeDirectory
    private let noise: [UInt8]

    /// The events of the start.
    private(set) var openNotes = ""

    init(below root: String, limitBytes: UInt64, ageLimit: Interval = .seconds(.max)) throws {
        var plan: DiskPlan?
        let directory = try NodeDirectory(
            below: root, newID: { _ in NodeID(low: 1, high: 2) }, wall: Self.now()
        ) { former in
            let made = try? DiskPlan(
                limitBytes: limitBytes, objectBytesMax: 64 << 20, formerSegmentBytes: former)
            plan = made
            return UInt64(made?.segmentBytes ?? 0)
        }
        guard let plan else { preconditionFailure("a limit of \(limitBytes)") }
        self.directory = directory
        figures = DiskCounters()
        var dice = SplitMix64(seed: 7)
        noise = (0..<4096).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
        var notes: [String] = []
        log = try DiskLog.open(
            directory,
            .init(plan: plan, ageLimit: ageLimit, keys: (3, 4), random: dice),
            directory.identity, counters: figures, formerWall: 0, now: Self.now()
        ) { notes.append($0.message) }
        openNotes = notes.joined(separator: "\n")
    }

    static func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

    static func key(_ number: Int) -> [UInt8] {
        Array("http://images.example/photos/2026/\(number).jpg".utf8)
    }

    static func name(_ number: Int) -> EntryName { EntryName(ofKey: key(number)) }

    /// Returns a head that a node can serve.
    private static func head(_ bodyBytes: Int) -> (bytes: [UInt8], layout: DiskHeadLayout) {
        let whole = "HTTP/1.1 200 OK\r\ncontent-length: \(bodyBytes)\r\n"
        let fields =
            "content-type: image/jpeg\r\ncache-control: public, max-age=31536000\r\n"
            + "last-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        let start = UInt32(whole.utf8.count)
        return (
            Array((whole + fields).utf8),
            DiskHeadLayout(
                partialStart: start, multipartStart: start, notModifiedStart: start,
                contentType: Extent(start: Int(start) + 14, count: 10), entityTag: .empty)
        )
    }

    func store(_ number: Int, bodyBytes: Int) throws {
        var body: [ByteBuffer] = []
        var left = bodyBytes
        while left > 0 {
            let count = min(left, noise.count)
            body.append(ByteBuffer(bytes: noise.prefix(count)))
            left -= count
        }
        let now = Self.now()
        let head = Self.head(bodyBytes)
        let record = DiskRecord(
            name: Self.name(number), invalidationVersion: log.view.version,
            times: DiskTimes(
                validated: now, generated: now, freshUntil: .max, lastModified: DiskFormat.noTime,
                date: now),
            lastAccess: UInt32(clamping: now / 1000), accessCount: 0, flags: [],
            layout: head.layout, key: Self.key(number), head: head.bytes, tags: [],
            bodyBytes: UInt64(bodyBytes),
            chunkSums: [])
        _ = try log.store(record, body: body, now: now)
    }

    /// Writes dirty pages and evicts the files from the page cache.
    func dropPageCache() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: directory.path) {
            try DiskFile("\(directory.path)/\(name)", creates: false).dropFromPageCache()
        }
    }

    /// Returns a rank of 0 to `keys` - 1 with the popularity (rank + 1)^-0.8.
    static func zipf(_ keys: Int, _ dice: inout SplitMix64) -> Int {
        let part = Double.random(in: 0..<1, using: &dice)
        return min(keys - 1, Int(pow(part, 5) * Double(keys)))
    }
}
