import Ground
import Synchronization
import Tiers

/// Holding entries against what was invalidated.
extension MemoryStore {
    /// Nothing was invalidated that might cover the entry since it was held against the marks.
    @inline(__always)
    func isSettled(_ resident: Resident) -> Bool {
        resident.checked.load(ordering: .relaxed) == marks.number(isPlain: resident.isPlain)
    }

    /// An entry that is in memory as the marks leave it: itself, or a stale one in its place; nil
    /// if there is none now.
    func settled(_ found: Resident) -> Resident? {
        guard let form = form(of: found) else {
            purge(found)
            return nil
        }
        guard form !== found else { return found }
        guard insert(form, inPlaceOf: found) else {
            purge(found)
            return nil
        }
        return form
    }

    private func purge(_ found: Resident) {
        if remove(found) { evictions.add(.purged) }
    }

    /// Has those that look for `key`, or for a variant under it, see what was invalidated by now:
    /// to be called after a mark for its URL.
    package func settle(_ key: [UInt8]) {
        guard let found = held(key)?.resident else { return }
        _ = settled(found)
        guard found.facts.flags.contains(.isVariantIndex) else { return }
        // An index is tagged with the keys of its variants.
        for place in found.tags {
            if let variant = held(place)?.resident { _ = settled(variant) }
        }
    }

    /// What an entry is by the marks; nil if it is dead, or there is no room for the stale one that
    /// it has become.
    package func form(of resident: Resident) -> Resident? {
        let number = marks.number(isPlain: resident.isPlain)
        let (tags, stamp) = (resident.tags, resident.stamp)
        switch marks.effect(on: resident.key, tags: tags, stamp: stamp) {
        case .dead: return nil
        case .stale:
            let since = marks.staleSince(resident.key, tags: tags, stamp: stamp)
            guard resident.facts.freshUntil <= since else {
                return stale(resident, since: since, number)
            }
        case nil: break
        }
        resident.checked.store(number, ordering: .relaxed)
        return resident
    }

    /// The entry as one that is stale since then; nil if there is no room for it.
    private func stale(_ resident: Resident, since: Instant, _ number: UInt64) -> Resident? {
        var facts = resident.facts
        facts.freshUntil = since
        let form = copy(of: resident, facts: facts)
        form?.checked.store(number, ordering: .relaxed)
        return form
    }

    /// The same answer as an entry that can be inserted, which no entry can twice; nil if there is
    /// no room for it.
    package func copy(of resident: Resident) -> Resident? {
        copy(of: resident, facts: resident.facts)
    }

    private func copy(of resident: Resident, facts: EntryFacts) -> Resident? {
        guard reserve(resident.overheadBytes) else { return nil }
        return Resident(
            key: resident.key, hash: resident.hash, name: resident.name, facts: facts,
            head: resident.head, layout: resident.layout, tags: resident.tags,
            stamp: resident.stamp, body: resident.body, account: account, share: resident.share)
    }
}
