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

extension Hall {
    /// Looks for an answer to `key`, whose keyed hash is `hash`, in what the page cache holds.
    func glanceAtDisk(_ key: [UInt8], hash: UInt64, wanted: Negotiation) -> DiskGlance {
        guard let disk = node.disk, let view = disk.view else { return .off }
        let name = EntryName(ofKey: key)
        var isLater = false
        for number in 0..<EntryName.candidateCount {
            let candidate = name.candidate(number, for: wanted)
            if let waiting = disk.waiting(candidate), waiting.facts.answers(wanted) {
                return .later(name)
            }
            guard view.shards.find(candidate.digest) != nil else { continue }
            switch view.readAtOnce(candidate, key: key, room: &diskRoom) {
            case .absent: continue
            case .later: isLater = true
            case .whole(let reading, let chunks):
                let facts = reading.facts(disk.clock)
                guard facts.answers(wanted) else { continue }
                let now = SystemClock.now()
                guard fence.judge(facts, for: [], now: now) != .revalidate,
                    let resident = store.promote(reading, chunks, hash: hash, clock: disk.clock)
                else { return .later(name) }
                store.insert(resident)
                touch(resident, now: now)
                return .found(resident)
            }
        }
        return isLater ? .later(name) : .absent(name)
    }
}
