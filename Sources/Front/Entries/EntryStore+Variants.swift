import Ground
import HTTPRules
import Logging
import Platform
import Serving
import Store
import Synchronization
import Telemetry
import Tiers
import Wire

/// The key of the primary entry of a URL: its response, or the index of its variants.
struct PrimaryKey {
    /// The key.
    let key: [UInt8]
    /// Keyed hash of the key.
    let hash: UInt64
    /// Memory share of the site or of images; `nil` if it is unlimited.
    let share: MemoryShare?
}

/// The location for a response that another node has offered.
struct OfferedLocation {
    /// Key of the URL's primary entry.
    let primaryKey: PrimaryKey
    /// Key for the response.
    let entryKey: EntryKey
    /// The variant index to insert and the fields that select the response; `nil` for a primary
    /// entry.
    var variant: (index: VariantIndex, names: FieldNames)?
}

/// The placement of a response among the variants of its URL.
struct EntryPlacement {
    /// Key of the variant, and the index that lists its selecting fields; `nil` under the request's
    /// own key.
    var variant: (key: EntryKey, index: VariantIndex)?
    /// Request fields that select the response.
    let nominated: FieldNames

    /// Key of the variant; `nil` under the request's own key.
    var key: EntryKey? { variant?.key }

    /// Returns the disk name of the response, given that of the URL's primary entry; `nil` without
    /// one.
    func name(primary: EntryName?) -> EntryName? {
        primary.map { name in key.map { EntryName(ofKey: $0.key) } ?? name }
    }
}

/// Storage of responses and variant indexes.
extension EntryStore {
    /// Returns the placement of a response selected by the fields `names`.
    ///
    /// - Parameters:
    ///   - query: the request that the response belongs to.
    ///   - names: the request fields that select the response; empty for none.
    ///   - claimsIndex: true to insert the variant index at once, so that two concurrent responses
    ///     share one generation.
    /// - Returns: the placement, which is no variant if no field selects the response and the key
    ///   has no variants; `nil` if the selecting field values are too long for a key.
    func placement(
        _ query: SiteRequest, selectedBy names: FieldNames, claimsIndex: Bool = false
    ) -> EntryPlacement? {
        indexing.withLock { _ in
            let place = placementUnlocked(query, selectedBy: names)
            if claimsIndex, let index = place?.variant?.index {
                claimIndex(index, of: query.primaryKey)
            }
            return place
        }
    }

    /// Returns the placement; requires the lock ``indexing``.
    private func placementUnlocked(_ query: SiteRequest, selectedBy names: FieldNames)
        -> EntryPlacement?
    {
        let current = store.find(query.key, hash: query.hash)
        let known = current.flatMap { VariantIndex(of: $0) }
        if names.isEmpty, known == nil { return EntryPlacement(nominated: names) }
        var generator = SystemRandomNumberGenerator()
        let index = (known ?? VariantIndex(generation: generator.next())).adding(names)
        return query.entryKey(of: names, index.generation, in: store).map {
            EntryPlacement(variant: ($0, index), nominated: names)
        }
    }

    /// Inserts a variant index that lists no variants, if there is none and memory has capacity;
    /// requires the lock ``indexing``.
    private func claimIndex(_ index: VariantIndex, of base: PrimaryKey) {
        let current = store.find(base.key, hash: base.hash)
        guard current.flatMap({ VariantIndex(of: $0) }) == nil,
            let entry = makeIndexEntry(
                of: index, of: base, places: [], version: tiers.marks.version)
        else { return }
        store.insert(entry)
    }

    /// Returns the location here of a response that another node stores under `key`; `nil` if the
    /// disk may have an index that memory lacks.
    ///
    /// A variant is placed under this node's own index, which is inserted if there is none.
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

    /// Inserts a variant index from disk, or from the write queue, into memory, unless there is an
    /// entry by now.
    func restoreIndex(_ index: MemoryEntry, for query: SiteRequest) {
        indexing.withLock { _ in
            guard store.find(query.key, hash: query.hash) == nil else { return }
            store.insert(index)
        }
    }

    /// Inserts the variant index of a key, with the variant at `place` as the newest one; does
    /// nothing for a primary entry.
    ///
    /// The index lists the keys of all variants, the newest first, so that a request for another
    /// variant can revalidate them (RFC 9111 §4.3.1), and that their total size can be limited.
    ///
    /// - Parameters:
    ///   - place: the placement of the variant.
    ///   - base: the key of the index.
    ///   - version: the invalidation version of the index.
    ///   - inMemoryAlone: true if the variant is stored in memory only, so that the index is not
    ///     required on disk.
    func insertIndex(
        listing place: EntryPlacement, of base: PrimaryKey, version: InvalidationVersion,
        inMemoryAlone: Bool = false
    ) {
        guard let (key, index) = place.variant else { return }
        indexing.withLock { _ in
            insertUnlocked(index, place.nominated, at: key, of: base, version, inMemoryAlone)
        }
    }

    /// Adds the variant to the index in memory, drops variants beyond the quota, and inserts the
    /// index if it has changed; requires the lock ``indexing``.
    private func insertUnlocked(
        _ made: VariantIndex, _ names: FieldNames, at place: EntryKey,
        of base: PrimaryKey, _ version: InvalidationVersion, _ inMemoryAlone: Bool
    ) {
        let current = store.find(base.key, hash: base.hash)
        var index = made
        // A concurrent response may have been selected by other fields.
        if let present = current.flatMap({ VariantIndex(of: $0) }),
            present.generation == made.generation
        {
            index = present.adding(names)
        }
        let known = current.flatMap { VariantIndex(of: $0) == nil ? nil : $0.tags } ?? []
        var places = [place.key] + known.filter { $0 != place.key }
        let surplus = surplusVariants(of: places)
        // An index without variants was only claimed, and is not on disk yet.
        let isOnDisk = !inMemoryAlone || !known.isEmpty && current?.name != nil
        if surplus.isEmpty, let current, VariantIndex(of: current) == index,
            known.contains(place.key), (current.name != nil) == (isOnDisk && disk != nil)
        {
            return
        }
        for number in surplus { removeVariant(places.remove(at: number)) }
        counters.add(.variantsDropped, surplus.count)
        let entry = makeIndexEntry(
            of: index, of: base, places: places, version: version, isOnDisk: isOnDisk)
        if let entry { insert(entry) }
    }

    /// Returns the indexes in `places`, the newest first, of the variants that exceed the quota.
    private func surplusVariants(of places: [[UInt8]]) -> [Int] {
        let quota = VariantQuota(
            countMax: variantsMax, bytesMax: store.account.limitBytes / 16)
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

    /// Removes a variant from memory and disk.
    private func removeVariant(_ key: [UInt8]) {
        if let held = store.peek(key) { store.remove(held.entry) }
        disk?.forget(EntryName(ofKey: key))
    }

    /// Creates the entry of a variant index; returns `nil` if memory has no capacity.
    private func makeIndexEntry(
        of index: VariantIndex, of base: PrimaryKey, places: [[UInt8]],
        version: InvalidationVersion, isOnDisk: Bool = true
    ) -> MemoryEntry? {
        var head: [UInt8] = []
        index.append(to: &head)
        let facts = EntryMetadata(
            size: 0, generatedAt: SystemClock.now(), freshUntil: .distantFuture,
            flags: .isVariantIndex,
            lastModified: nil, date: SystemClock.wallTime(), entityTag: .empty)
        return makeMarkerEntry(
            head, facts, of: base, tags: places, version: version, isOnDisk: isOnDisk)
    }

    /// Maximum number of variants offered for validation in one request.
    private static let validatedVariantsMax = 8

    /// Returns the newest variants of the request's key in memory, whichever requests they match.
    func variants(of query: SiteRequest) -> [MemoryEntry] {
        guard let current = store.find(query.key, hash: query.hash),
            VariantIndex(of: current) != nil
        else { return [] }
        // Listing variants for validation does not count as use.
        return current.tags.prefix(Self.validatedVariantsMax)
            .compactMap { store.peek($0)?.entry }
            .filter { $0.metadata.flags.isResponse && $0.status == 200 }
    }

    /// Records on this node for a while that responses for the request's key are not stored, so
    /// that requests do not wait for each other in vain; does nothing for a key with variants.
    func recordHitForMiss(_ query: SiteRequest, now: Instant) {
        let found = store.find(query.key, hash: query.hash)
        // Other variants may be storable.
        if let found, found.metadata.flags.contains(.isVariantIndex) { return }
        let facts = EntryMetadata(
            size: 0, generatedAt: now, freshUntil: now + Self.hitForMissTime, flags: .isHitForMiss,
            lastModified: nil, date: SystemClock.wallTime(), entityTag: .empty)
        let entry = makeMarkerEntry(
            [], facts, of: query.primaryKey, tags: [], version: tiers.marks.version, isOnDisk: false
        )
        guard let entry else { return }
        store.insert(entry)
    }

    /// Time for which a record of unstorable responses is valid.
    private static let hitForMissTime = Interval.seconds(120)

    /// Creates an entry without a body that is not a response; returns `nil` if memory has no
    /// capacity.
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
