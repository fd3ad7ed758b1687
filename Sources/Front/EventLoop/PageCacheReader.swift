import Ground
import HTTPRules
import Peering
import Platform
import Serving
import Store
import Tiers
import Wire

/// Result of a disk lookup that does not block.
enum ImmediateDiskLookup {
    /// There is no disk tier.
    case disabled
    /// A fresh entry, which is in memory now.
    case hit(MemoryEntry)
    /// Not stored; the name is that of the URL's primary entry.
    case miss(EntryName)
    /// A read by a disk thread, or revalidation of the stored response, is required.
    case needsSlowPath(EntryName)
}

extension ImmediateDiskLookup {
    /// True if a full lookup on disk is required, which may block.
    var needsBlockingRead: Bool { if case .needsSlowPath = self { true } else { false } }

    /// Name of the URL's primary entry on disk; `nil` if it was served or there is no disk.
    var name: EntryName? {
        switch self {
        case .disabled, .hit: nil
        case .miss(let name), .needsSlowPath(let name): name
        }
    }
}

/// Reader of what the disk tier's files have in the page cache, on one event loop: it never blocks.
struct PageCacheReader {
    /// The disk tier; `nil` without a disk cache.
    private let disk: DiskStore?
    /// The memory tier, into which complete entries are promoted.
    private let store: MemoryStore
    /// Buffer for reads on the loop; empty without a disk tier.
    var buffer: [UInt8]
    /// Records whose checksum was verified recently.
    private var verified: VerifiedRecordCache

    /// Creates the reader of the tiers of `node`.
    init(of node: NodeCore) {
        disk = node.disk
        store = node.store
        buffer = disk == nil ? [] : Array(repeating: 0, count: DiskView.bufferBytes)
        verified = disk == nil ? VerifiedRecordCache(isEmpty: true) : VerifiedRecordCache()
    }

    /// Looks for a response to `query` that is fresh, and inserts it into memory.
    ///
    /// A variant index yields `needsSlowPath`, because the variant takes a second lookup.
    mutating func lookUp(_ query: SiteRequest) -> ImmediateDiskLookup {
        guard let disk, let view = disk.view else { return .disabled }
        let name = EntryName(ofKey: query.key)
        guard !disk.hasPendingWrite(name) else { return .needsSlowPath(name) }
        let now = SystemClock.now()
        switch view.readNonblocking(name, key: query.key, buffer: &buffer) {
        case .notFound: return .miss(name)
        case .wouldBlock: return .needsSlowPath(name)
        case .complete(let reading, let chunks):
            verified.add(reading, now: now)
            let facts = reading.metadata(disk.clock)
            guard facts.flags.isResponse, query.reuse(facts, now: now) == .fresh,
                let entry = store.promote(
                    reading, chunks, hash: query.hash, clock: disk.clock, share: query.share)
            else { return .needsSlowPath(name) }
            store.insert(entry) { view.isCurrent(reading) }
            return .hit(entry)
        }
    }

    /// Returns the record under `key`, which memory has evicted since its checksum was verified.
    ///
    /// - Parameters:
    ///   - key: the key of the response.
    ///   - hash: the keyed hash of the key.
    ///   - share: the memory share of the response; `nil` if it is unlimited.
    ///   - request: the traits of the request.
    ///   - writer: the transport of the response.
    ///   - now: the current time.
    ///   - isFresh: returns true if a response with this metadata may be served.
    /// - Returns: `nil` unless the request is for the whole body, the response is fresh, the record
    ///   is in the page cache, and the socket accepts all of it now.
    mutating func sendfileRecord(
        _ key: [UInt8], _ hash: UInt64, _ share: MemoryShare?, _ request: RequestTraits,
        _ writer: (any ResponseWriter)?, _ now: Instant, if isFresh: (EntryMetadata) -> Bool
    ) -> SendfileRecord? {
        guard !request.isSelective, !request.isHead, let disk, let view = disk.view
        else { return nil }
        let name = EntryName(ofKey: key)
        guard !disk.hasPendingWrite(name),
            let reading = view.readHead(
                name, key: key, verified: verified, buffer: &buffer, now: now)
        else { return nil }
        let (record, facts) = (reading.record, reading.metadata(disk.clock))
        // Bytes that the socket does not accept now would have to wait in memory.
        guard record.bodyBytes > 0, facts.flags.isResponse, isFresh(facts),
            record.bodyBytes + UInt64(record.head.count + HeadWriter.linesBytesMax)
                <= writer?.socketWritableBytes ?? 0
        else { return nil }
        return SendfileRecord(
            reading: reading, view: view, clock: disk.clock, share: share,
            head: RenderedHead(reading), facts: facts, hash: hash)
    }

    /// Loads the entry of a record of which the socket accepted only a part, contrary to its
    /// report; `nil` if the record can no longer be read without blocking, or memory has no
    /// capacity.
    mutating func entry(of record: SendfileRecord) -> MemoryEntry? {
        let former = record.reading
        guard
            case .complete(let reading, let chunks) = record.view.readNonblocking(
                former.record.name, key: former.record.key, buffer: &buffer),
            reading.isSameResponse(as: former)
        else { return nil }
        let entry = store.promote(
            reading, chunks, hash: record.hash, clock: record.clock, share: record.share)
        if let entry { store.insert(entry) { record.view.isCurrent(reading) } }
        return entry
    }
}

/// A fresh response that can be sent from the disk's page cache with sendfile.
struct SendfileRecord {
    fileprivate let reading: DiskRecordHandle
    fileprivate let view: DiskView
    fileprivate let clock: DiskClock
    fileprivate let share: MemoryShare?
    /// Head of the response.
    let head: RenderedHead
    /// Metadata of the response.
    let facts: EntryMetadata
    /// Keyed hash of the entry's key.
    let hash: UInt64

    /// The name on disk.
    var name: EntryName { reading.record.name }

    /// Sends body bytes behind everything written before; returns the number that the socket
    /// accepted.
    func send(through writer: (any ResponseWriter)?) -> UInt64 {
        UInt64(writer?.sendDirectly { view.send(reading, to: $0) } ?? 0)
    }
}
