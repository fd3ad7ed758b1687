import Ground
import HTTPRules
import Serving
import Store
import Tiers
import Wire

/// What a request finds on disk without waiting for it.
enum DiskGlance {
    /// There is no disk tier.
    case off
    /// A fresh entry, in memory by now.
    case found(Resident)
    /// It is not there; what answers to its URL are called on disk.
    case absent(EntryName)
    /// A disk thread has to look, or the origin has to be asked about what is there.
    case later(EntryName)
}

extension DiskGlance {
    var isLater: Bool { if case .later = self { true } else { false } }

    /// What answers to the URL are called on disk.
    var name: EntryName? {
        switch self {
        case .off, .found: nil
        case .absent(let name), .later(let name): name
        }
    }
}

extension Hall {
    /// Looks in what the page cache holds for an answer to `query` that may be given unasked.
    ///
    /// What was selected by fields of its request takes a second look.
    func glanceAtDisk(_ query: SiteRequest) -> DiskGlance {
        guard let disk = node.disk, let view = disk.view else { return .off }
        let name = EntryName(ofKey: query.key)
        guard !disk.isWaiting(name) else { return .later(name) }
        let now = SystemClock.now()
        switch view.readAtOnce(name, key: query.key, room: &diskRoom) {
        case .absent: return .absent(name)
        case .later: return .later(name)
        case .whole(let reading, let chunks):
            checkedRecords.add(reading, now: now)
            let facts = reading.facts(disk.clock)
            guard facts.flags.isAnswer, query.reuse(facts, now: now) == .fresh,
                let resident = store.promote(
                    reading, chunks, hash: query.hash, clock: disk.clock, share: query.share)
            else { return .later(name) }
            store.insert(resident) { view.isStill(reading) }
            return .found(resident)
        }
    }
}
