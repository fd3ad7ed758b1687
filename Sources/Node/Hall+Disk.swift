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
    /// Looks for an image that answers `query` in what the page cache holds.
    func glanceAtDisk(_ query: SiteRequest) -> DiskGlance {
        guard let disk = node.disk, let view = disk.view else { return .off }
        let wanted = query.negotiation
        let name = EntryName(ofKey: query.key)
        // What answers to a site's key takes a second look.
        guard query.isImage else { return .later(name) }
        var isLater = false
        for number in 0..<EntryName.candidateCount {
            let candidate = name.candidate(number, for: wanted)
            if let waiting = disk.waiting(candidate), waiting.facts.answers(wanted) {
                return .later(name)
            }
            guard view.shards.find(candidate.digest) != nil else { continue }
            switch view.readAtOnce(candidate, key: query.key, room: &diskRoom) {
            case .absent: continue
            case .later: isLater = true
            case .whole(let reading, let chunks):
                let facts = reading.facts(disk.clock)
                guard facts.answers(wanted) else { continue }
                let now = SystemClock.now()
                guard fence.judge(facts, for: [], now: now) != .revalidate,
                    let resident = store.promote(
                        reading, chunks, hash: query.hash, clock: disk.clock)
                else { return .later(name) }
                store.insert(resident)
                touch(resident, now: now)
                return .found(resident)
            }
        }
        return isLater ? .later(name) : .absent(name)
    }
}
