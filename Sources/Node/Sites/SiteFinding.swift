import Ground
import HTTPRules
import Serving
import Store

/// What memory has under the key of a request.
enum SiteFinding {
    /// An answer that was selected for the request, fit to be used or not.
    case answer(Resident, Reuse)
    /// Answers to the key are not stored: nobody waits for another's.
    case passes
    /// No answer. Earlier ones were selected by the fields `expected`, of which there are none
    /// where nothing is known.
    case absent(expected: FieldNames)
}

extension SiteRequest {
    /// The fields of requests that a stored answer was selected by.
    func nominated(of entry: Resident) -> FieldNames { nominated(byHead: entry.head) }

    /// The same of an answer that is stored with this head.
    func nominated(byHead head: [UInt8]) -> FieldNames {
        isImage
            ? VaryNames(image: StoredHead.lines(head), in: head.span).names
            : VaryNames(renderedHead: head).names
    }

    /// Looks under the key and, where answers were selected by fields of their requests, under that
    /// of the variant (RFC 9111 §4.1).
    func find(in store: MemoryStore, now: Instant) -> SiteFinding {
        guard let found = store.find(key, hash: hash) else {
            return .absent(expected: FieldNames())
        }
        return judge(found, in: store, now: now)
    }

    /// The same for what stands under the key.
    func judge(_ found: Resident, in store: MemoryStore, now: Instant) -> SiteFinding {
        let flags = found.facts.flags
        if flags.isAnswer {
            guard isAnswered(by: found, now: now) else { return .absent(expected: FieldNames()) }
            return .answer(found, reuse(found.facts, now: now))
        }
        if flags.contains(.isHitForMiss) {
            return now < found.facts.freshUntil ? .passes : .absent(expected: FieldNames())
        }
        guard let index = VariantIndex(of: found) else { return .absent(expected: FieldNames()) }
        return variant(of: index, in: store, now: now)
    }

    /// That there is no image holds while it is remembered, and is not asked about.
    private func isAnswered(by found: Resident, now: Instant) -> Bool {
        !isImage || found.status == 200 || reuse(found.facts, now: now) == .fresh
    }

    /// The newest of the variants that answer the request.
    private func variant(of index: VariantIndex, in store: MemoryStore, now: Instant)
        -> SiteFinding
    {
        let key = key
        let found = index.newest(under: key.span, for: told, in: store) {
            isAnswered(by: $0, now: now)
        }
        guard let found else {
            return .absent(expected: index.sets.first ?? FieldNames())
        }
        return .answer(found, reuse(found.facts, now: now))
    }

    /// The fields that the latest answer to the key was selected by.
    func expected(in store: MemoryStore) -> FieldNames {
        let found = store.find(key, hash: hash)
        return found.flatMap { VariantIndex(of: $0) }?.sets.first ?? FieldNames()
    }

    /// Where the variants that answer the request would stand.
    func variantPlaces(of index: VariantIndex, in store: MemoryStore) -> [EntryPlace] {
        index.sets.compactMap { place(of: $0, index.generation, in: store) }
    }

    /// Where an answer that was selected by the fields `names` stands; nil if those fields of the
    /// request are too long to be part of a key.
    func place(of names: FieldNames, _ generation: UInt64, in store: MemoryStore) -> EntryPlace? {
        let key = key
        return told.place(of: names, generation, under: key.span, in: store)
    }
}

extension RequestLines {
    /// Where an answer stands under `base` that these lines select by the fields `names`.
    fileprivate func place(
        of names: FieldNames, _ generation: UInt64, under base: Span<UInt8>, in store: MemoryStore
    ) -> EntryPlace? {
        var text: [UInt8] = []
        let bytes = bytes
        let isMade = VariantKey.append(
            base: base, generation: generation, names: names, lines: lines, in: bytes.span,
            to: &text)
        return isMade ? EntryPlace(key: text, hash: store.hash(of: text)) : nil
    }
}

extension VariantIndex {
    /// The newest of the answers under `base` in memory that a request with these lines selects, of
    /// those that are `wanted`.
    func newest(
        under base: Span<UInt8>, for told: RequestLines, in store: MemoryStore,
        wanted: (Resident) -> Bool = { _ in true }
    ) -> Resident? {
        var choice = VariantChoice()
        var newest: Resident?
        for (number, names) in sets.enumerated() {
            guard let place = told.place(of: names, generation, under: base, in: store),
                let resident = store.find(place), wanted(resident)
            else { continue }
            choice.add(
                number: number, date: resident.facts.date, hasVary: !names.isEmpty)
            if choice.number == number { newest = resident }
        }
        return newest
    }
}

extension Reuse {
    /// It may be given to the client at once.
    var isUsable: Bool {
        switch self {
        case .fresh, .stale: true
        case .validate, .unusable: false
        }
    }
}

extension VariantIndex {
    /// The index that an entry holds; nil if it is none.
    init?(of entry: Resident) {
        guard entry.facts.flags.contains(.isVariantIndex) else { return nil }
        let text = entry.text
        self.init(text.span, at: entry.headStart..<text.count)
    }
}
