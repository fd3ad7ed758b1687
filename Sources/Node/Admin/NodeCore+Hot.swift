import Admin
import Ground
import HTTPRules
import Store
import Telemetry

/// What is asked for most.
extension NodeCore {
    /// `counters` are of all loops.
    func hotEntries(_ counters: [SpaceSaving.Counter], limit: Int) -> HotEntriesDocument {
        var counts: [UInt64: UInt64] = [:]
        for counter in counters { counts[counter.key, default: 0] += counter.count - counter.error }
        let hottest = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        var rows: [HotEntriesDocument.Entry] = []
        for (hash, count) in hottest where rows.count < limit {
            guard let entry = store.entry(withHash: hash), entry.status == 200 else {
                continue
            }
            rows.append(HotEntriesDocument.Entry(entry, accesses: count))
        }
        return HotEntriesDocument(rows: rows)
    }
}

extension HotEntriesDocument.Entry {
    fileprivate init(_ entry: MemoryEntry, accesses: UInt64) {
        let key = String(decoding: entry.key, as: UTF8.self)
        let head = RenderedHead(entry)
        let type = String(decoding: head.slice(head.layout.contentType), as: UTF8.self)
        self.init(
            key: key, url: Self.url(key), contentType: type, bodyBytes: entry.metadata.size,
            accesses: accesses)
    }

    /// An image's key is its URL; a site's lacks the scheme, and may say at its end which it is.
    private static func url(_ key: String) -> String {
        let base = key.prefix { $0 != "\n" }
        guard base.hasPrefix("//") else { return String(base) }
        let isSecure = base.hasSuffix("#https")
        return (isSecure ? "https:" : "http:") + (isSecure ? base.dropLast(6) : base)
    }
}
