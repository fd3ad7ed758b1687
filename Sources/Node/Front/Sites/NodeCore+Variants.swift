import Ground
import HTTPRules
import Logging
import Serving
import Store
import Synchronization
import Telemetry
import Tiers
import Wire

/// Under which the answers to one URL of a site stand, or the index of its variants.
struct PrimaryKey {
    let key: [UInt8]
    let hash: UInt64
    /// The site's part of the memory; nil if it may take all of it.
    let share: MemoryShare?
}

/// Where an answer is to stand that another node has offered.
struct OfferedLocation {
    let primaryKey: PrimaryKey
    let entryKey: EntryKey
    /// The index that says so, and what selects it there.
    var variant: (index: VariantIndex, names: FieldNames)?
}

/// What sites keep under their keys.
extension NodeCore {
    /// Where an answer to `query` stands.
    enum StorageLocation {
        /// Under the key that was asked for.
        case primary
        /// Under that of a variant; the index says which fields select it.
        case variant(EntryKey, VariantIndex)
        /// It cannot be stored: what selects it is too long to be part of a key.
        case unstorable
    }

    /// Where an answer stands that is selected by the fields `names`.
    ///
    /// `claims`: an index is put there at once, so that two answers that come at one time are of
    /// one generation.
    func location(
        _ query: SiteRequest, selectedBy names: FieldNames, claimsIndex: Bool = false
    ) -> StorageLocation {
        indexing.withLock { _ in
            let place = locationUnlocked(query, selectedBy: names)
            if claimsIndex, case .variant(_, let index) = place {
                claimIndex(index, of: query.primaryKey)
            }
            return place
        }
    }

    private func locationUnlocked(_ query: SiteRequest, selectedBy names: FieldNames)
        -> StorageLocation
    {
        let current = store.find(query.key, hash: query.hash)
        let known = current.flatMap { VariantIndex(of: $0) }
        if names.isEmpty, known == nil { return .primary }
        var generator = SystemRandomNumberGenerator()
        let index = (known ?? VariantIndex(generation: generator.next())).adding(names)
        guard let place = query.entryKey(of: names, index.generation, in: store) else {
            return .unstorable
        }
        return .variant(place, index)
    }

    /// Puts an index where there is none.
    private func claimIndex(_ index: VariantIndex, of base: PrimaryKey) {
        let current = store.find(base.key, hash: base.hash)
        guard current.flatMap({ VariantIndex(of: $0) }) == nil,
            let entry = makeIndexEntry(
                of: index, of: base, places: [], version: marks.version, now: SystemClock.now())
        else { return }
        store.insert(entry)
    }

    /// Where an answer stands here that another node has under `key`: a variant stands under this
    /// node's own index, which is put there if there is none.
    ///
    /// - Returns: nil if the disk may have an index that memory has not.
    func location(ofKey key: [UInt8], share: MemoryShare?) -> OfferedLocation? {
        let parts = VariantKey.Parts(key)
        let baseKey = parts?.base ?? key
        let base = PrimaryKey(key: baseKey, hash: store.hash(of: baseKey), share: share)
        return indexing.withLock { _ in
            let known = store.find(base.key, hash: base.hash).flatMap { VariantIndex(of: $0) }
            guard parts != nil || known != nil else {
                return OfferedLocation(
                    primaryKey: base, entryKey: EntryKey(key: key, hash: base.hash))
            }
            let isOnDisk = disk?.view?.contains(EntryName(ofKey: baseKey).digest) ?? false
            guard known != nil || !isOnDisk else { return nil }
            let names = parts?.names ?? FieldNames()
            var generator = SystemRandomNumberGenerator()
            let first = known ?? VariantIndex(generation: parts?.generation ?? generator.next())
            let index = first.adding(names)
            var place = base.key
            if let parts {
                place = parts.key(in: index.generation)
            } else {
                VariantKey.append(index.generation, to: &place)
            }
            claimIndex(index, of: base)
            return OfferedLocation(
                primaryKey: base, entryKey: EntryKey(key: place, hash: store.hash(of: place)),
                variant: (index, names))
        }
    }

    /// Puts an index into memory that is on disk, or waits to be, unless there is one by now.
    func restoreIndex(_ index: MemoryEntry, for query: SiteRequest) {
        indexing.withLock { _ in
            guard store.find(query.key, hash: query.hash) == nil else { return }
            store.insert(index)
        }
    }

    /// Puts an index of variants under the request's key, of which the one at `place`, selected by
    /// the fields `names`, is the newest.
    ///
    /// The places of all are kept with it, the newest first, so that a request for another variant
    /// can ask the origin about them (RFC 9111 §4.3.1), and that they can be limited together.
    ///
    /// `inMemoryAlone`: so is what stands at `place`, and nothing needs it on disk.
    func insert(
        _ index: VariantIndex, _ names: FieldNames, at place: EntryKey,
        of base: PrimaryKey, version: InvalidationVersion, now: Instant, inMemoryAlone: Bool = false
    ) {
        indexing.withLock { _ in
            insertUnlocked(index, names, at: place, of: base, version, now, inMemoryAlone)
        }
    }

    private func insertUnlocked(
        _ made: VariantIndex, _ names: FieldNames, at place: EntryKey,
        of base: PrimaryKey, _ version: InvalidationVersion, _ now: Instant, _ inMemoryAlone: Bool
    ) {
        let current = store.find(base.key, hash: base.hash)
        var index = made
        // Another answer may have been selected by other fields meanwhile.
        if let present = current.flatMap({ VariantIndex(of: $0) }),
            present.generation == made.generation
        {
            index = present.adding(names)
        }
        let known = current.flatMap { VariantIndex(of: $0) == nil ? nil : $0.tags } ?? []
        var places = [place.key] + known.filter { $0 != place.key }
        let surplus = surplusVariants(of: places)
        // One without places is claimed, and not on disk yet.
        let isOnDisk = !inMemoryAlone || !known.isEmpty && current?.name != nil
        if surplus.isEmpty, let current, VariantIndex(of: current) == index,
            known.contains(place.key), (current.name != nil) == (isOnDisk && disk != nil)
        {
            return
        }
        for number in surplus { removeVariant(places.remove(at: number)) }
        counters.add(.variantsDropped, surplus.count)
        let entry = makeIndexEntry(
            of: index, of: base, places: places, version: version, now: now, isOnDisk: isOnDisk)
        if let entry { insert(entry) }
    }

    /// Which of the variants at `places`, the newest first, are too many.
    private func surplusVariants(of places: [[UInt8]]) -> [Int] {
        let quota = VariantQuota(
            countMax: settings.variantsMax, bytesMax: store.account.limitBytes / 16)
        let newest = places.first.flatMap { store.peek($0)?.entry.indexedBytes }
        let isDue = quota.needsCheck(
            count: places.count, keyBytes: places.reduce(0) { $0 + $1.count },
            newestBytes: newest ?? 0)
        guard isDue else { return [] }
        return quota.indexesToEvict(
            of: places.map {
                guard let (held, frequency) = store.peek($0) else {
                    return VariantQuota.VariantUsage(keyBytes: $0.count, bytes: 0, frequency: 0)
                }
                return VariantQuota.VariantUsage(
                    keyBytes: $0.count, bytes: held.indexedBytes, frequency: frequency)
            })
    }

    private func removeVariant(_ key: [UInt8]) {
        if let held = store.peek(key) { store.remove(held.entry) }
        disk?.forget(EntryName(ofKey: key))
    }

    private func makeIndexEntry(
        of index: VariantIndex, of base: PrimaryKey, places: [[UInt8]],
        version: InvalidationVersion,
        now: Instant, isOnDisk: Bool = true
    ) -> MemoryEntry? {
        var head: [UInt8] = []
        index.append(to: &head)
        let facts = EntryMetadata(
            size: 0, bornAt: now, freshUntil: .distantFuture, flags: .isVariantIndex,
            lastModified: nil, date: SystemClock.wallTime(), entityTag: .empty)
        return makeMarkerEntry(
            head, facts, of: base, tags: places, version: version, isOnDisk: isOnDisk)
    }

    /// How many variants of one key the origin is asked about at once.
    private static let validatedVariantsMax = 8

    /// The newest variants of the request's key that memory holds, whichever requests they answer.
    func variants(of query: SiteRequest) -> [MemoryEntry] {
        guard let current = store.find(query.key, hash: query.hash),
            VariantIndex(of: current) != nil
        else { return [] }
        // What was not asked for is not used.
        return current.tags.prefix(Self.validatedVariantsMax)
            .compactMap { store.peek($0)?.entry }
            .filter { $0.metadata.flags.isResponse && $0.status == 200 }
    }

    /// Remembers for a while that answers to the request's key are not stored, so that requests do
    /// not wait for each other in vain; on this node only.
    func recordHitForMiss(_ query: SiteRequest, now: Instant) {
        let found = store.find(query.key, hash: query.hash)
        // Where there are variants, others may well be stored.
        if let found, found.metadata.flags.contains(.isVariantIndex) { return }
        let facts = EntryMetadata(
            size: 0, bornAt: now, freshUntil: now + Self.hitForMissTime, flags: .isHitForMiss,
            lastModified: nil, date: SystemClock.wallTime(), entityTag: .empty)
        let entry = makeMarkerEntry(
            [], facts, of: query.primaryKey, tags: [], version: marks.version, isOnDisk: false)
        guard let entry else { return }
        store.insert(entry)
    }

    /// For how long it is remembered that answers are not stored.
    private static let hitForMissTime = Interval.seconds(120)

    /// An entry without a body that is no answer; nil if memory has no room for it.
    private func makeMarkerEntry(
        _ head: [UInt8], _ facts: EntryMetadata, of base: PrimaryKey, tags: [[UInt8]],
        version: InvalidationVersion, isOnDisk: Bool
    ) -> MemoryEntry? {
        let overhead = MemoryEntry.overhead(
            keyBytes: base.key.count, headBytes: head.count,
            tagBytes: MemoryEntry.bytes(of: tags), bodyBytes: 0)
        guard store.reserve(overhead) else { return nil }
        return MemoryEntry(
            key: base.key, hash: base.hash,
            name: isOnDisk && disk != nil ? EntryName(ofKey: base.key) : nil,
            metadata: facts, head: head,
            layout: HeadLayout(
                partialStart: 0, multipartStart: 0, notModifiedStart: 0, contentType: .empty),
            tags: tags, version: version,
            body: StoredBody(chunks: [], size: 0, capacityBytes: 0, account: store.account),
            account: store.account, share: base.share)
    }
}
