import Admin
import Cluster
import Ground
import HTTPRules
import NIOCore
import Peering
import Platform
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// Lookup of everything that a node stores under a URL; blocks on the disk and never contacts an
/// origin.
struct EntryInspection: Sendable {
    let node: NodeCore
    let settings: NodeSettings

    /// A stored response, in memory, on disk or both.
    struct StoredEntry: Sendable {
        var key: [UInt8]
        /// Rules for the reuse of the response.
        var policy: ReusePolicy
        var metadata: EntryMetadata
        var head: RenderedHead
        var invalidationVersion: InvalidationVersion
        /// Cache tags of the response.
        var tags: [[UInt8]]
        /// Name of the entry on disk and on the ring, or `nil` if it has none.
        var name: EntryName?
        /// The entry in memory, or `nil` if there is none.
        var memoryEntry: MemoryEntry?
        /// The record on disk, or `nil` if there is none.
        var diskReading: DiskRecordHandle?

        /// Identifier of this response among those stored for one URL: its key's digest, in
        /// hexadecimal.
        var variantName: String {
            String(EntryName(ofKey: key).digest.first, radix: 16)
        }
    }

    /// A key under which responses may be stored, and the reuse policy that applies to them.
    struct CandidateKey {
        var key: [UInt8]
        var policy: ReusePolicy
    }

    /// Returns the keys under which responses to `url` may be stored.
    ///
    /// They are the image keys, and the key of the site that serves the URL's host. The keys name
    /// no variant.
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

    /// Returns the keys under which the image of `url` may be stored: of the URL itself, and of the
    /// image that an image API request in it names.
    private func imageKeys(of url: [UInt8]) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        var key: [UInt8] = []
        let made = CacheKey.normalise(
            url: url.span, at: 0..<url.count, into: &key, bytesMax: settings.urlBytesMax)
        if made == .normalised { keys.append(key) }
        guard let parts = AbsoluteURL(url) else { return keys }
        // The target of an image API request is the URL of the image itself.
        let target = Array(url[parts.target])
        if case .image(let extent) = ImageTarget.parse(target.span, at: 0..<target.count) {
            let inner = CacheKey.normalise(
                percentEncoded: target.span, at: extent.range, into: &key,
                bytesMax: settings.urlBytesMax)
            if inner == .normalised, !keys.contains(key) { keys.append(key) }
        }
        return keys
    }

    /// Returns the stored responses under `places`.
    ///
    /// Variants selected by request fields are found if they are in memory; of those that are only
    /// on disk, the newest few are found, which the variant index lists.
    func find(under places: [CandidateKey]) -> [StoredEntry] {
        var found: [StoredEntry] = []
        for place in places {
            find(for: place.key, place.policy, &found)
            for entry in variants(of: place.key) { add(entry, place.policy, to: &found) }
            // A variant index stores the keys of its newest variants as its tags.
            let indexes = found.filter { $0.metadata.flags.contains(.isVariantIndex) }
            for key in Set(indexes.flatMap(\.tags)) { find(for: key, place.policy, &found) }
        }
        return found.filter { !$0.metadata.flags.contains(.isVariantIndex) }
    }

    /// Adds the entries in memory and on disk under exactly `key`.
    private func find(for key: [UInt8], _ policy: ReusePolicy, _ found: inout [StoredEntry]) {
        if let held = node.store.peek(key) { add(held.entry, policy, to: &found) }
        if let reading = node.disk?.view?.read(EntryName(ofKey: key), key: key) {
            add(reading, policy, to: &found)
        }
    }

    /// Returns the variants of `key` that are in memory, found by a scan of all shards.
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

    /// Adds an entry in memory, unless it was found before.
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

    /// Adds a disk record: to its entry if that is in memory too, otherwise as an entry of its own.
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

extension EntryInspection {
    /// Returns the admin document on the variants of `url`, and whether any is stored.
    ///
    /// - Parameters:
    ///   - url: the URL to look up; it need not be canonical.
    ///   - accesses: the estimated accesses of the most requested entries in memory, by the hash of
    ///     the key.
    /// - Returns: the document, and true if any variant is stored.
    func document(
        of url: String, accesses: [UInt64: UInt64]
    ) -> (document: EntryDocument, isHeld: Bool) {
        let places = candidateKeys(of: Array(url.utf8))
        let found = find(under: places)
        let key = found.first?.key ?? places.first?.key ?? []
        let digest = EntryName(ofKey: key).digest
        let owners = node.hub.map { hub in
            hub.ringUpdater.ring.owners(of: digest).prefix(hub.replicas).map { "\($0)" }
        }
        var document = EntryDocument()
        document.url = url
        document.key = String(decoding: key, as: UTF8.self)
        document.variants = found.map { variantDocument($0, accesses) }
        document.owners = owners ?? ["\(node.purges.id)"]
        document.isOwner = node.hub.map { $0.owns(EntryName(ofKey: key)) } ?? true
        return (document, !found.isEmpty)
    }

    /// A stored response body.
    struct Body: Sendable {
        /// Value of Content-Type.
        var contentType: String
        /// Content codings (Content-Encoding), in the order of the fields; empty for an uncoded
        /// body.
        var contentCodings: [String]
        var bytes: [UInt8]
    }

    /// Size limit of bodies that the admin port sends, in bytes.
    private static let bodyBytesMax: UInt64 = 16 << 20

    /// Returns the body of the first stored response to `url` that matches.
    ///
    /// - Parameters:
    ///   - url: the URL to look up; it need not be canonical.
    ///   - key: the key to match; `nil` matches any.
    ///   - variant: the ``StoredEntry/variantName`` to match; `nil` matches any.
    /// - Returns: `nil` if no response matches, the body exceeds ``bodyBytesMax``, or the disk
    ///   cannot be read.
    func body(of url: String, key: [UInt8]?, variant: String?) -> Body? {
        let found = find(under: candidateKeys(of: Array(url.utf8))).first {
            (key == nil || $0.key == key) && (variant == nil || $0.variantName == variant)
        }
        guard let found, found.metadata.size <= Self.bodyBytesMax else { return nil }
        var bytes: [UInt8] = []
        if let entry = found.memoryEntry {
            for chunk in entry.chunks { bytes.append(contentsOf: chunk.readableBytesView) }
        } else if var reading = found.diskReading, let view = node.disk?.view {
            let count = DiskRecord.chunkCount(found.metadata.size)
            guard let chunks = view.readChunks(&reading, from: 0, count: count) else { return nil }
            for chunk in chunks { bytes.append(contentsOf: chunk.readableBytesView) }
        }
        let type = found.head.slice(found.head.layout.contentTypeExtent)
        return Body(
            contentType: String(decoding: type, as: UTF8.self),
            contentCodings: fields(found.head.bytes).filter { $0.name == "content-encoding" }
                .map(\.value), bytes: bytes)
    }

    /// Returns the description of a stored response; `accesses` are estimates by the hash of the
    /// key.
    private func variantDocument(
        _ found: StoredEntry, _ accesses: [UInt64: UInt64]
    ) -> EntryDocument.Variant {
        let now = SystemClock.now()
        let facts = found.metadata
        var variant = EntryDocument.Variant()
        variant.key = String(decoding: found.key, as: UTF8.self)
        variant.name = found.variantName
        variant.tier = found.memoryEntry == nil ? "disk" : "memory"
        variant.isAlsoOnDisk = found.memoryEntry != nil && found.diskReading != nil
        variant.status = found.head.status
        variant.contentType = String(
            decoding: found.head.slice(found.head.layout.contentTypeExtent), as: UTF8.self)
        variant.bodyBytes = facts.size
        variant.ageMilliseconds = max(.zero, now - facts.generatedAt).milliseconds
        let purge = purgeEffect(of: found)
        let freshUntil = max(facts.applying(purge, at: now).freshUntil, facts.generatedAt)
        variant.remainingFreshnessMilliseconds = (freshUntil - now).milliseconds
        if facts.validatedAt > .zero {
            variant.validatedMillisecondsAgo = max(.zero, now - facts.validatedAt).milliseconds
        }
        variant.memoryAccesses = found.memoryEntry.flatMap { accesses[$0.hash] }
        if let record = found.diskReading?.record {
            variant.accesses = UInt64(record.accessCount)
            let seconds = SystemClock.wallTime().seconds - Int64(record.lastAccess)
            variant.lastAccessMillisecondsAgo = max(0, seconds) * 1_000
        }
        variant.invalidationVersion =
            "\(found.invalidationVersion.epoch).\(found.invalidationVersion.count)"
        variant.tags = found.tags.filter { URLName.name(inTag: $0) == nil }
            .map { String(decoding: $0, as: UTF8.self) }
        let fields = fields(found.head.bytes)
        variant.headerFields = fields.map { [$0.name, $0.value] }
        variant.entityTag = fields.first { $0.name == "etag" }?.value
        variant.lastModified = fields.first { $0.name == "last-modified" }?.value
        variant.vary = fields.filter { $0.name == "vary" }.flatMap { line in
            line.value.split(separator: ",").map { $0.trimmed.lowercased() }
        }
        let (decision, reason) = forecast(found, purge, now)
        (variant.decision, variant.reason) = (decision.rawValue, reason)
        return variant
    }

    /// Returns the effect of the recorded marks on the entry, which no request has applied yet.
    private func purgeEffect(of found: StoredEntry) -> ReuseForecast.PurgeEffect? {
        let marks = node.marks
        switch marks.effect(on: found.key, tags: found.tags, version: found.invalidationVersion) {
        case .purged: return .hard
        case .stale:
            let since = marks.staleSince(
                found.key, tags: found.tags, version: found.invalidationVersion)
            return .soft(since: since)
        case nil: return nil
        }
    }

    /// Returns what a client without request directives would receive now, and the reason in words.
    private func forecast(
        _ found: StoredEntry, _ purge: ReuseForecast.PurgeEffect?, _ now: Instant
    ) -> (EntryDocument.ServeDecision, String) {
        let fence = node.fence
        let prognosis = ReuseForecast(
            found.metadata, by: found.policy, purge: purge, window: fence.window,
            fence: fence.interval,
            now: now)
        switch prognosis {
        case .fresh(let left): return (.fresh, "fresh for another \(Self.durationText(left))")
        case .stale(let since):
            return (
                .stale, "stale for \(Self.durationText(since)); served while it is revalidated"
            )
        case .refetch: return (.refetch, "purged")
        case .mustValidate(.fenced):
            return (.revalidate, "the node is fenced, and the entry was not validated recently")
        case .mustValidate(.noCache):
            return (.revalidate, "the response has no-cache: it is revalidated each time")
        case .mustValidate(.softPurged): return (.revalidate, "soft purged")
        case .mustValidate(.stale(let since)):
            return (.revalidate, "stale for \(Self.durationText(since))")
        }
    }

    /// Returns an interval in seconds, minutes, hours or days.
    private static func durationText(_ interval: Interval) -> String {
        let seconds = interval.seconds
        if seconds < 120 { return "\(seconds) s" }
        if seconds < 7_200 { return "\(seconds / 60) min" }
        return seconds < 172_800 ? "\(seconds / 3_600) h" : "\(seconds / 86_400) days"
    }

    /// Returns the field lines of a stored head, with names in lower case.
    private func fields(_ head: [UInt8]) -> [(name: String, value: String)] {
        head.split(separator: 0x0A).compactMap { line in
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
            let value = String(decoding: line[line.index(after: colon)...], as: UTF8.self)
            return (name, String(value.trimmed))
        }
    }
}

extension StringProtocol {
    /// The text without white space at either end.
    fileprivate var trimmed: String {
        let rest = drop { $0.isWhitespace }
        return String(rest.reversed().drop { $0.isWhitespace }.reversed())
    }
}
