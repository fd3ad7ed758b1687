import Cluster
import Ground
import Peering
import Platform
import Store
import Synchronization
import Telemetry
import Tiers
import Wire

/// The entries of a node in both tiers; an entry is on this node's disk if the node owns it.
///
/// Thread-safe.
final class EntryStore: Sendable {
    /// The memory and the disk tier.
    let tiers: CacheTiers
    /// The node's counters.
    let counters: NodeCounters
    /// A lock held while an index of variants is looked up and created.
    let indexing = Mutex<Void>(())
    private let hubState = Mutex<PeerHub?>(nil)
    private let variantsMaxState: Atomic<Int>

    /// Creates the entries of a node that is in no cluster yet; `variantsMax` is the largest number
    /// of variants of one key.
    init(_ tiers: CacheTiers, counters: NodeCounters, variantsMax: Int) {
        self.tiers = tiers
        self.counters = counters
        variantsMaxState = Atomic(variantsMax)
    }

    /// The memory tier.
    var store: MemoryStore { tiers.memory }
    /// The disk tier; `nil` without a disk cache.
    var disk: DiskStore? { tiers.disk }

    /// The node's membership in its cluster; `nil` while it is in none.
    var hub: PeerHub? {
        get { hubState.withLock { $0 } }
        set { hubState.withLock { $0 = newValue } }
    }

    /// The largest number of variants of one key.
    var variantsMax: Int {
        get { variantsMaxState.load(ordering: .relaxed) }
        set { variantsMaxState.store(newValue, ordering: .relaxed) }
    }

    /// Inserts a response into memory and, if this node owns it, queues it for the disk.
    func insert(_ entry: MemoryEntry) {
        store.insert(entry)
        guard isStoredOnDisk(entry.name) else { return }
        disk?.enqueueWrite(entry, now: SystemClock.now())
    }

    /// Inserts a response that was fetched, and the variant index that lists it if it is a variant.
    ///
    /// - Parameters:
    ///   - entry: the response.
    ///   - place: its placement.
    ///   - base: the key of the URL's primary entry.
    ///   - isOffered: true to offer the response to its other owners.
    func insert(
        _ entry: MemoryEntry, at place: EntryPlacement, of base: PrimaryKey, isOffered: Bool = false
    ) {
        insert(entry)
        if isOffered { offer(entry) }
        insertIndex(listing: place, of: base, version: entry.version)
    }

    /// Returns true if a fetched response of this name is also stored on this node's disk.
    ///
    /// The owner of a URL stores all its variants, because their names have one position on the
    /// ring.
    func isStoredOnDisk(_ name: EntryName?) -> Bool {
        guard let name, disk?.view != nil else { return false }
        return hub?.owns(name) ?? true
    }

    /// Returns the hash by which a fetched response is compared with the entries that it would
    /// evict; `nil` if it is admitted without comparison.
    ///
    /// A response for the disk must be in memory first. If the disk then finds it too large, it
    /// stays in memory; otherwise it would be fetched for every request.
    func admissionHash(of name: EntryName?, at hash: UInt64) -> UInt64? {
        isStoredOnDisk(name) ? nil : hash
    }

    /// Removes an entry from the disk and from memory.
    func remove(_ entry: MemoryEntry) {
        // First the tier from which it could be found again.
        if let name = entry.name { disk?.forget(name) }
        store.remove(entry)
    }

    /// Stores a response that a peer has offered, unless the node already has one as new.
    ///
    /// - Parameters:
    ///   - entry: the response, complete.
    ///   - offer: the offer that it was fetched for.
    ///   - done: called on any thread, with true if this response or one as new is stored.
    func storeOffered(
        _ entry: MemoryEntry, _ offer: PeerOffer, done: @escaping @Sendable (Bool) -> Void
    ) {
        let held = store.find(entry.key, hash: entry.hash)
        if let held {
            guard held.metadata.date <= entry.metadata.date else { return done(true) }
            if held.metadata.date < entry.metadata.date { store.insert(entry) }
        }
        guard let disk else { return done(held != nil || store.insert(entry)) }
        disk.enqueueHandoff(
            entry, idle: .seconds(60 * Int64(offer.idleMinutes)),
            touches: offer.touches, now: SystemClock.now(), done: done)
    }

    /// Stores the variant index that leads to a received response in memory and on disk; does
    /// nothing for a primary entry.
    func storeVariantIndex(of taken: OfferedLocation, version: InvalidationVersion) {
        guard let (index, names) = taken.variant else { return }
        let base = taken.primaryKey
        let place = EntryPlacement(variant: (taken.entryKey, index), nominated: names)
        insertIndex(listing: place, of: base, version: version)
        // The index may be in memory alone, from a time when other nodes owned the key.
        guard let view = disk?.view, !view.contains(EntryName(ofKey: base.key).digest),
            let kept = store.find(base.key, hash: base.hash)
        else { return }
        insert(kept)
    }

    /// Offers a response that was just fetched from the origin to its other owners, if it is fresh
    /// and the node is in a cluster.
    func offer(_ fetched: MemoryEntry) {
        guard let hub, let name = fetched.name, fetched.metadata.freshUntil > SystemClock.now()
        else {
            return
        }
        hub.offer(fetched, name.digest)
    }
}

/// The key of an entry in memory, with its keyed hash.
struct EntryKey: Sendable {
    let key: [UInt8]
    let hash: UInt64
}

extension MemoryStore {
    /// Returns the keyed hash of a key.
    func hash(of key: [UInt8]) -> UInt64 {
        hash(key.span, 0..<key.count)
    }

    /// Returns the entry under a key with the keyed hash `hash`, and records its use; `nil` if
    /// there is none.
    func find(_ key: [UInt8], hash: UInt64) -> MemoryEntry? {
        find(key.span, 0..<key.count, hash: hash)
    }

    /// Returns the entry under `place`, and records its use; `nil` if there is none.
    func find(_ place: EntryKey) -> MemoryEntry? {
        find(place.key, hash: place.hash)
    }
}
