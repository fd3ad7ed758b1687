import Ground
import Serving
import Store
import Tiers
import Wire

/// A fresh answer that can be sent from where it lies on disk.
struct RecordToSend {
    fileprivate let reading: DiskReading
    fileprivate let view: DiskView
    fileprivate let clock: DiskClock
    fileprivate let share: MemoryShare?
    let head: RenderedHead
    let facts: EntryFacts
    /// The keyed hash of its key.
    let hash: UInt64

    var name: EntryName { reading.record.name }

    /// Sends the body behind what was sent before; how many bytes the socket has taken.
    func send(through outlet: (any Outlet)?) -> UInt64 {
        UInt64(outlet?.sendPast { view.send(reading, to: $0) } ?? 0)
    }
}

extension Hall {
    /// What memory has not kept of an image since it was checked, if all of it is wanted by someone
    /// with a socket, and may be given unasked.
    func recordToSend(
        _ key: [UInt8], _ hash: UInt64, _ request: RequestFacts, _ outlet: (any Outlet)?,
        _ now: Instant
    ) -> RecordToSend? {
        recordToSend(key, hash, imageShare, request, outlet, now) {
            fence.judge($0, for: request, now: now) == .serve
        }
    }

    /// The same of the answer to a site's request; images are asked for before it is one.
    func recordToSend(
        _ query: SiteRequest, _ request: RequestFacts, _ outlet: (any Outlet)?, _ now: Instant
    ) -> RecordToSend? {
        guard !query.isImage else { return nil }
        return recordToSend(query.key, query.hash, query.share, request, outlet, now) {
            query.reuse($0, now: now) == .fresh
        }
    }

    private func recordToSend(
        _ key: [UInt8], _ hash: UInt64, _ share: MemoryShare?, _ request: RequestFacts,
        _ outlet: (any Outlet)?, _ now: Instant, if mayGive: (EntryFacts) -> Bool
    ) -> RecordToSend? {
        guard !request.isSelective, !request.isHead, let disk = node.disk, let view = disk.view
        else { return nil }
        let name = EntryName(ofKey: key)
        guard !disk.isWaiting(name),
            let reading = view.readHead(
                name, key: key, checked: checkedRecords, room: &diskRoom, now: now)
        else { return nil }
        let (record, facts) = (reading.record, reading.facts(disk.clock))
        // What the socket does not take now would have to wait in memory.
        guard record.bodyBytes > 0, facts.flags.isAnswer, mayGive(facts),
            record.bodyBytes + UInt64(record.head.count + HeadWriter.linesBytesMax)
                <= outlet?.socketRoom ?? 0
        else { return nil }
        return RecordToSend(
            reading: reading, view: view, clock: disk.clock, share: share,
            head: RenderedHead(reading), facts: facts, hash: hash)
    }

    /// The entry that a record makes of which a socket has taken only a part, against what it said;
    /// nil if it cannot be read any more, or has no room.
    func entry(of record: RecordToSend) -> Resident? {
        let former = record.reading
        guard
            case .whole(let reading, let chunks) = record.view.readAtOnce(
                former.record.name, key: former.record.key, room: &diskRoom),
            reading.isSameAnswer(as: former)
        else { return nil }
        let resident = store.promote(
            reading, chunks, hash: record.hash, clock: record.clock, share: record.share)
        if let resident { store.insert(resident) { record.view.isStill(reading) } }
        return resident
    }
}
