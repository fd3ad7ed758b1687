import Admin
import Ground
import HTTPRules
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// Looks for everything that a node holds under a URL; waits for the disk, and asks no origin.
struct EntryInspection: Sendable {
    let node: NodeCore
    let settings: NodeSettings

    /// One stored answer, wherever it is.
    struct StoredEntry: Sendable {
        var key: [UInt8]
        var policy: ReusePolicy
        var metadata: EntryMetadata
        var head: RenderedHead
        var invalidationVersion: InvalidationVersion
        var tags: [[UInt8]]
        var name: EntryName?
        var memoryEntry: MemoryEntry?
        var diskReading: DiskRecordHandle?

        /// Differs between answers that are held under one key.
        var variantName: String {
            String(EntryName(ofKey: key).digest.first, radix: 16)
        }
    }

    /// Where answers may be held, and by which policy they are given.
    struct CandidateKey {
        var key: [UInt8]
        var policy: ReusePolicy
    }

    /// Keys under which answers to `url` may be held: of images, and of every site that answers for
    /// its host; in no key is a variant named.
    func candidateKeys(of url: [UInt8]) -> [CandidateKey] {
        var places = imageKeys(of: url).map {
            CandidateKey(key: $0, policy: settings.images.policy(ofKey: $0.span).reusePolicy)
        }
        guard let parts = AbsoluteURL(url),
            let number = settings.sites.find(url.span, at: parts.host, isSecure: parts.isSecure)
        else { return places }
        let plan = settings.sitePolicies[number]
        var key: [UInt8] = []
        let isMade = plan.makeKey(
            url.span, host: parts.host, path: parts.target, isSecure: parts.isSecure, &key)
        if isMade { places.append(CandidateKey(key: key, policy: plan.reusePolicy)) }
        return places
    }

    private func imageKeys(of url: [UInt8]) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        var key: [UInt8] = []
        let made = CacheKey.normalise(
            url: url.span, at: 0..<url.count, into: &key, bytesMax: settings.urlBytesMax)
        if made == .normalised { keys.append(key) }
        guard let parts = AbsoluteURL(url) else { return keys }
        // What a client asks the image API for is the image.
        let target = Array(url[parts.target])
        if case .image(let extent) = ImageTarget.parse(target.span, at: 0..<target.count) {
            let inner = CacheKey.normalise(
                percentEncoded: target.span, at: extent.range, into: &key,
                bytesMax: settings.urlBytesMax)
            if inner == .normalised, !keys.contains(key) { keys.append(key) }
        }
        return keys
    }

    /// Everything that is held at `places`; of answers that were selected by fields of their
    /// requests what memory has, and of those that the disk alone has the newest few.
    func find(under places: [CandidateKey]) -> [StoredEntry] {
        var found: [StoredEntry] = []
        for place in places {
            find(for: place.key, place.policy, &found)
            for entry in variants(of: place.key) { add(entry, place.policy, to: &found) }
            // An index keeps the keys of its newest variants as its tags.
            let indexes = found.filter { $0.metadata.flags.contains(.isVariantIndex) }
            for key in Set(indexes.flatMap(\.tags)) { find(for: key, place.policy, &found) }
        }
        return found.filter { !$0.metadata.flags.contains(.isVariantIndex) }
    }

    private func find(for key: [UInt8], _ policy: ReusePolicy, _ found: inout [StoredEntry]) {
        if let held = node.store.peek(key) { add(held.entry, policy, to: &found) }
        if let reading = node.disk?.view?.read(EntryName(ofKey: key), key: key) {
            add(reading, policy, to: &found)
        }
    }

    /// Answers that were selected by fields of their requests, as far as memory has them.
    private func variants(of key: [UInt8]) -> [MemoryEntry] {
        let start = key + [UInt8(ascii: "\n")]
        var found: [MemoryEntry] = []
        for shard in 0..<node.store.shardCount {
            var place: Int?
            repeat {
                let (some, next) = node.store.entries(inShard: shard, below: place, atMost: 512)
                found += some.map(\.entry).filter { $0.keyAndHead.starts(with: start) }
                place = next
            } while place != nil
        }
        return found
    }

    private func add(
        _ entry: MemoryEntry, _ policy: ReusePolicy, to found: inout [StoredEntry]
    ) {
        guard !found.contains(where: { $0.memoryEntry === entry }) else { return }
        found.append(
            StoredEntry(
                key: entry.key, policy: policy, metadata: entry.metadata,
                head: RenderedHead(entry),
                invalidationVersion: entry.version, tags: entry.tags, name: entry.name,
                memoryEntry: entry))
    }

    private func add(
        _ reading: DiskRecordHandle, _ policy: ReusePolicy, to found: inout [StoredEntry]
    ) {
        let record = reading.record
        if let place = found.firstIndex(where: { $0.key == record.key }) {
            found[place].diskReading = reading
        } else if let clock = node.disk?.clock {
            found.append(
                StoredEntry(
                    key: record.key, policy: policy, metadata: reading.metadata(clock),
                    head: RenderedHead(reading),
                    invalidationVersion: record.invalidationVersion, tags: record.tags,
                    name: record.name, diskReading: reading))
        }
    }
}
