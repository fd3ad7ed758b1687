import Ground
import HTTPRules
import Serving
import Store

/// Result of a memory lookup for a request.
enum SiteLookupResult {
    /// A response that the request selects, with whether it may be used.
    case found(MemoryEntry, Reuse)
    /// Responses for the key are not stored, so requests do not wait for each other.
    case hitForMiss
    /// No response. `expected` are the fields that selected earlier responses; empty if nothing is
    /// known.
    case miss(expected: FieldNames)
}

extension SiteRequest {
    /// Returns the request fields that select a stored response.
    func nominated(of entry: MemoryEntry) -> FieldNames { nominated(head: entry.head) }

    /// Returns the request fields that select a response stored with this head.
    func nominated(head: [UInt8]) -> FieldNames {
        isImage
            ? VaryNames(image: StoredHead.lines(head), in: head.span).names
            : VaryNames(renderedHead: head).names
    }

    /// Looks up the request's key and, if it holds a variant index, the selected variant (RFC 9111
    /// §4.1).
    func find(in store: MemoryStore, now: Instant) -> SiteLookupResult {
        guard let found = store.find(key, hash: hash) else {
            return .miss(expected: FieldNames())
        }
        return evaluate(found, in: store, now: now)
    }

    /// Evaluates the entry found under the request's key.
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

    /// Returns false for a negative response that has expired: it is not revalidated.
    private func isSatisfied(by found: MemoryEntry, now: Instant) -> Bool {
        !isImage || found.status == 200 || reuse(found.metadata, now: now) == .fresh
    }

    /// Returns the newest variant that the request selects.
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

    /// Returns the fields that selected the newest variant of the key; empty if memory has no index
    /// of variants.
    func expected(in store: MemoryStore) -> FieldNames {
        let found = store.find(key, hash: hash)
        return found.flatMap { VariantIndex(of: $0) }?.sets.first ?? FieldNames()
    }

    /// Returns the keys of all variants that the request could select.
    func variantKeys(of index: VariantIndex, in store: MemoryStore) -> [EntryKey] {
        index.sets.compactMap { entryKey(of: $0, index.generation, in: store) }
    }

    /// Returns the key of a response selected by the fields `names`; `nil` if their values in the
    /// request are too long for a key.
    func entryKey(of names: FieldNames, _ generation: UInt64, in store: MemoryStore) -> EntryKey? {
        let key = key
        return forwardedFields.entryKey(of: names, generation, under: key.span, in: store)
    }
}

extension RequestFields {
    /// Returns the key under `base` of a response that these lines select by the fields `names`.
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
    /// Returns the newest variant under `base` in memory that a request with these lines selects,
    /// among those for which `wanted` returns true.
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
    /// True if the entry may be served at once.
    var isUsable: Bool {
        switch self {
        case .fresh, .stale: true
        case .mustValidate, .unusable: false
        }
    }
}

extension VariantIndex {
    /// Creates the index that an entry contains; returns `nil` if it contains none.
    init?(of entry: MemoryEntry) {
        guard entry.metadata.flags.contains(.isVariantIndex) else { return nil }
        let text = entry.keyAndHead
        self.init(text.span, at: entry.headStart..<text.count)
    }
}
