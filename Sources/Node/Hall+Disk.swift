import Ground
import HTTPRules
import Serving
import Store
import Tiers
import Wire

/// What a request finds on disk without waiting for it.
enum ImmediateDiskLookup {
    /// There is no disk tier.
    case disabled
    /// A fresh entry, in memory by now.
    case hit(MemoryEntry)
    /// It is not there; what answers to its URL are called on disk.
    case miss(EntryName)
    /// A disk thread has to look, or the origin has to be asked about what is there.
    case wouldBlock(EntryName)
}

extension ImmediateDiskLookup {
    var needsBlockingRead: Bool { if case .wouldBlock = self { true } else { false } }

    /// What answers to the URL are called on disk.
    var name: EntryName? {
        switch self {
        case .disabled, .hit: nil
        case .miss(let name), .wouldBlock(let name): name
        }
    }
}

extension EventLoopContext {
    /// Looks in what the page cache holds for an answer to `query` that may be given unasked.
    ///
    /// What was selected by fields of its request takes a second look.
    func lookUpDiskImmediately(_ query: SiteRequest) -> ImmediateDiskLookup {
        guard let disk = node.disk, let view = disk.view else { return .disabled }
        let name = EntryName(ofKey: query.key)
        guard !disk.hasPendingWrite(name) else { return .wouldBlock(name) }
        let now = SystemClock.now()
        switch view.readNonblocking(name, key: query.key, buffer: &diskReadBuffer) {
        case .notFound: return .miss(name)
        case .wouldBlock: return .wouldBlock(name)
        case .complete(let reading, let chunks):
            checkedRecords.add(reading, now: now)
            let facts = reading.metadata(disk.clock)
            guard facts.flags.isResponse, query.reuse(facts, now: now) == .fresh,
                let entry = store.promote(
                    reading, chunks, hash: query.hash, clock: disk.clock, share: query.share)
            else { return .wouldBlock(name) }
            store.insert(entry) { view.isCurrent(reading) }
            return .hit(entry)
        }
    }
}
