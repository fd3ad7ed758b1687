import Ground
import HTTPRules
import Serving
import Store

/// What memory has under the key of a request.
enum SiteLookupResult {
    /// An answer that was selected for the request, fit to be used or not.
    case found(MemoryEntry, Reuse)
    /// Answers to the key are not stored: nobody waits for another's.
    case hitForMiss
    /// No answer. Earlier ones were selected by the fields `expected`, of which there are none
    /// where nothing is known.
    case miss(expected: FieldNames)
}

extension SiteRequest {
    /// The fields of requests that a stored answer was selected by.
    func nominated(of entry: MemoryEntry) -> FieldNames { nominated(head: entry.head) }

    /// The same of an answer that is stored with this head.
    func nominated(head: [UInt8]) -> FieldNames {
        isImage
            ? VaryNames(image: StoredHead.lines(head), in: head.span).names
            : VaryNames(renderedHead: head).names
    }

    /// Looks under the key and, where answers were selected by fields of their requests, under that
    /// of the variant (RFC 9111 §4.1).
    func find(in store: MemoryStore, now: Instant) -> SiteLookupResult {
        guard let found = store.find(key, hash: hash) else {
            return .miss(expected: FieldNames())
        }
        return evaluate(found, in: store, now: now)
    }

    /// The same for what stands under the key.
    func evaluate(_ found: MemoryEntry, in store: MemoryStore, now: Instant) -> SiteLookupResult {
        let flags = found.metadata.flags
        if flags.isResponse {
            guard isSatisfied(by: found, now: now) else { return .miss(expected: FieldNames()) }
            return .found(found, reuse(found.metadata, now: now))
        }
        if flags.contains(.isHitForMiss) {
            return now < found.metadata.freshUntil ? .hitForMiss : .miss(expected: FieldNames())
        }
        guard let index = VariantIndex(of: found) else { return .miss(expected: FieldNames()) }
        return variant(of: index, in: store, now: now)
    }

    /// That there is no image holds while it is remembered, and is not asked about.
    private func isSatisfied(by found: MemoryEntry, now: Instant) -> Bool {
        !isImage || found.status == 200 || reuse(found.metadata, now: now) == .fresh
    }

    /// The newest of the variants that answer the request.
    private func variant(of index: VariantIndex, in store: MemoryStore, now: Instant)
        -> SiteLookupResult
    {
        let key = key
        let found = index.newest(under: key.span, for: forwardedFields, in: store) {
            isSatisfied(by: $0, now: now)
        }
        guard let found else {
            return .miss(expected: index.sets.first ?? FieldNames())
        }
        return .found(found, reuse(found.metadata, now: now))
    }

    /// The fields that the latest answer to the key was selected by.
    func expected(in store: MemoryStore) -> FieldNames {
        let found = store.find(key, hash: hash)
        return found.flatMap { VariantIndex(of: $0) }?.sets.first ?? FieldNames()
    }

    /// Where the variants that answer the request would stand.
    func variantKeys(of index: VariantIndex, in store: MemoryStore) -> [EntryKey] {
        index.sets.compactMap { entryKey(of: $0, index.generation, in: store) }
    }

    /// Where an answer that was selected by the fields `names` stands; nil if those fields of the
    /// request are too long to be part of a key.
    func entryKey(of names: FieldNames, _ generation: UInt64, in store: MemoryStore) -> EntryKey? {
        let key = key
        return forwardedFields.entryKey(of: names, generation, under: key.span, in: store)
    }
}

extension RequestFields {
    /// Where an answer stands under `base` that these lines select by the fields `names`.
    fileprivate func entryKey(
        of names: FieldNames, _ generation: UInt64, under base: Span<UInt8>, in store: MemoryStore
    ) -> EntryKey? {
        var text: [UInt8] = []
        let bytes = bytes
        let isMade = VariantKey.append(
            base: base, generation: generation, names: names, lines: lines, in: bytes.span,
            to: &text)
        return isMade ? EntryKey(key: text, hash: store.hash(of: text)) : nil
    }
}

extension VariantIndex {
    /// The newest of the answers under `base` in memory that a request with these lines selects, of
    /// those that are `wanted`.
    func newest(
        under base: Span<UInt8>, for told: RequestFields, in store: MemoryStore,
        wanted: (MemoryEntry) -> Bool = { _ in true }
    ) -> MemoryEntry? {
        var choice = VariantSelection()
        var newest: MemoryEntry?
        for (number, names) in sets.enumerated() {
            guard let place = told.entryKey(of: names, generation, under: base, in: store),
                let entry = store.find(place), wanted(entry)
            else { continue }
            choice.add(
                index: number, date: entry.metadata.date, hasVary: !names.isEmpty)
            if choice.index == number { newest = entry }
        }
        return newest
    }
}

extension Reuse {
    /// It may be given to the client at once.
    var isUsable: Bool {
        switch self {
        case .fresh, .stale: true
        case .mustValidate, .unusable: false
        }
    }
}

extension VariantIndex {
    /// The index that an entry holds; nil if it is none.
    init?(of entry: MemoryEntry) {
        guard entry.metadata.flags.contains(.isVariantIndex) else { return nil }
        let text = entry.keyAndHead
        self.init(text.span, at: entry.headStart..<text.count)
    }
}
