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
struct SiteBase {
    let key: [UInt8]
    let hash: UInt64
    /// The site's part of the memory; nil if it may take all of it.
    let share: MemoryShare?
}

/// Where an answer is to stand that another node has offered.
struct OfferedPlace {
    let base: SiteBase
    let place: EntryPlace
    /// The index that says so, and what selects it there.
    var variant: (index: VariantIndex, names: FieldNames)?
}

/// What sites keep under their keys.
extension NodeCore {
    /// Where an answer to `query` stands.
    enum SitePlace {
        /// Under the key that was asked for.
        case key
        /// Under that of a variant; the index says which fields select it.
        case variant(EntryPlace, VariantIndex)
        /// It cannot be stored: what selects it is too long to be part of a key.
        case none
    }

    /// Where an answer stands that is selected by the fields `names`.
    ///
    /// `claims`: an index is put there at once, so that two answers that come at one time are of
    /// one generation.
    func place(
        _ query: SiteRequest, selectedBy names: FieldNames, claims: Bool = false
    ) -> SitePlace {
        indexing.withLock { _ in
            let place = unlockedPlace(query, selectedBy: names)
            if claims, case .variant(_, let index) = place { claim(index, of: query.base) }
            return place
        }
    }

    private func unlockedPlace(_ query: SiteRequest, selectedBy names: FieldNames) -> SitePlace {
        let current = store.find(query.key, hash: query.hash)
        let known = current.flatMap { VariantIndex(of: $0) }
        if names.isEmpty, known == nil { return .key }
        var generator = SystemRandomNumberGenerator()
        let index = (known ?? VariantIndex(generation: generator.next())).adding(names)
        guard let place = query.place(of: names, index.generation, in: store) else { return .none }
        return .variant(place, index)
    }

    /// Puts an index where there is none.
    private func claim(_ index: VariantIndex, of base: SiteBase) {
        let current = store.find(base.key, hash: base.hash)
        guard current.flatMap({ VariantIndex(of: $0) }) == nil,
            let entry = entry(
                of: index, of: base, places: [], stamp: marks.stamp, now: SystemClock.now())
        else { return }
        store.insert(entry)
    }

    /// Where an answer stands here that another node has under `key`: a variant stands under this
    /// node's own index, which is put there if there is none.
    ///
    /// - Returns: nil if the disk may have an index that memory has not.
    func place(ofKey key: [UInt8], share: MemoryShare?) -> OfferedPlace? {
        let parts = VariantKey.Parts(key)
        let baseKey = parts?.base ?? key
        let base = SiteBase(key: baseKey, hash: store.hash(of: baseKey), share: share)
        return indexing.withLock { _ in
            let known = store.find(base.key, hash: base.hash).flatMap { VariantIndex(of: $0) }
            guard parts != nil || known != nil else {
                return OfferedPlace(base: base, place: EntryPlace(key: key, hash: base.hash))
            }
            let isOnDisk = disk?.view?.holds(EntryName(ofKey: baseKey).digest) ?? false
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
            claim(index, of: base)
            return OfferedPlace(
                base: base, place: EntryPlace(key: place, hash: store.hash(of: place)),
                variant: (index, names))
        }
    }

    /// Puts an index into memory that is on disk, or waits to be, unless there is one by now.
    func restore(_ index: Resident, for query: SiteRequest) {
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
    func keep(
        _ index: VariantIndex, _ names: FieldNames, at place: EntryPlace,
        of base: SiteBase, stamp: Stamp, now: Instant, inMemoryAlone: Bool = false
    ) {
        indexing.withLock { _ in
            unlockedKeep(index, names, at: place, of: base, stamp, now, inMemoryAlone)
        }
    }

    private func unlockedKeep(
        _ made: VariantIndex, _ names: FieldNames, at place: EntryPlace,
        of base: SiteBase, _ stamp: Stamp, _ now: Instant, _ inMemoryAlone: Bool
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
        let surplus = surplus(of: places)
        // One without places is claimed, and not on disk yet.
        let isOnDisk = !inMemoryAlone || !known.isEmpty && current?.name != nil
        if surplus.isEmpty, let current, VariantIndex(of: current) == index,
            known.contains(place.key), (current.name != nil) == (isOnDisk && disk != nil)
        {
            return
        }
        for number in surplus { forgetVariant(places.remove(at: number)) }
        counters.add(.variantsDropped, surplus.count)
        let entry = entry(
            of: index, of: base, places: places, stamp: stamp, now: now, isOnDisk: isOnDisk)
        if let entry { keep(entry) }
    }

    /// Which of the variants at `places`, the newest first, are too many.
    private func surplus(of places: [[UInt8]]) -> [Int] {
        let quota = VariantQuota(
            countMax: settings.variantsMax, bytesMax: store.account.limitBytes / 16)
        let newest = places.first.flatMap { store.held($0)?.resident.indexedBytes }
        let isDue = quota.isDue(
            count: places.count, keyBytes: places.reduce(0) { $0 + $1.count },
            newestBytes: newest ?? 0)
        guard isDue else { return [] }
        return quota.surplus(
            of: places.map {
                guard let (held, frequency) = store.held($0) else {
                    return VariantQuota.Item(keyBytes: $0.count, bytes: 0, frequency: 0)
                }
                return VariantQuota.Item(
                    keyBytes: $0.count, bytes: held.indexedBytes, frequency: frequency)
            })
    }

    private func forgetVariant(_ key: [UInt8]) {
        if let held = store.held(key) { store.remove(held.resident) }
        disk?.forget(EntryName(ofKey: key))
    }

    private func entry(
        of index: VariantIndex, of base: SiteBase, places: [[UInt8]], stamp: Stamp,
        now: Instant, isOnDisk: Bool = true
    ) -> Resident? {
        var head: [UInt8] = []
        index.append(to: &head)
        let facts = EntryFacts(
            size: 0, bornAt: now, freshUntil: .distantFuture, flags: .isVariantIndex,
            lastModified: nil, date: SystemClock.wallTime(), entityTag: .empty)
        return note(head, facts, of: base, tags: places, stamp: stamp, isOnDisk: isOnDisk)
    }

    /// How many variants of one key the origin is asked about at once.
    private static let placesMax = 8

    /// The newest variants of the request's key that memory holds, whichever requests they answer.
    func variants(of query: SiteRequest) -> [Resident] {
        guard let current = store.find(query.key, hash: query.hash),
            VariantIndex(of: current) != nil
        else { return [] }
        // What was not asked for is not used.
        return current.tags.prefix(Self.placesMax)
            .compactMap { store.held($0)?.resident }
            .filter { $0.facts.flags.isAnswer && $0.status == 200 }
    }

    /// Remembers for a while that answers to the request's key are not stored, so that requests do
    /// not wait for each other in vain; on this node only.
    func notePasses(_ query: SiteRequest, now: Instant) {
        let found = store.find(query.key, hash: query.hash)
        // Where there are variants, others may well be stored.
        if let found, found.facts.flags.contains(.isVariantIndex) { return }
        let facts = EntryFacts(
            size: 0, bornAt: now, freshUntil: now + Self.passesFor, flags: .isHitForMiss,
            lastModified: nil, date: SystemClock.wallTime(), entityTag: .empty)
        let entry = note(
            [], facts, of: query.base, tags: [], stamp: marks.stamp, isOnDisk: false)
        guard let entry else { return }
        store.insert(entry)
    }

    /// For how long it is remembered that answers are not stored.
    private static let passesFor = Interval.seconds(120)

    /// An entry without a body that is no answer; nil if memory has no room for it.
    private func note(
        _ head: [UInt8], _ facts: EntryFacts, of base: SiteBase, tags: [[UInt8]],
        stamp: Stamp, isOnDisk: Bool
    ) -> Resident? {
        let overhead = Resident.overhead(
            keyBytes: base.key.count, headBytes: head.count,
            tagBytes: Resident.bytes(of: tags), bodyBytes: 0)
        guard store.reserve(overhead) else { return nil }
        return Resident(
            key: base.key, hash: base.hash,
            name: isOnDisk && disk != nil ? EntryName(ofKey: base.key) : nil,
            facts: facts, head: head,
            layout: HeadLayout(
                partialStart: 0, multipartStart: 0, notModifiedStart: 0, contentType: .empty),
            tags: tags, stamp: stamp,
            body: Body(chunks: [], size: 0, capacityBytes: 0, account: store.account),
            account: store.account, share: base.share)
    }
}
