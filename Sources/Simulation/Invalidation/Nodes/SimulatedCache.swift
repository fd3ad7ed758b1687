import Cluster
import Ground
import Serving
import Tiers

/// The permitted use of a stored entry at an instant.
enum ReuseDecision: Sendable {
    case fresh, stale, validate
}

/// The memory tier, the index of the disk tier and the marks of one node's process.
struct SimulatedCache: Sendable {
    private let keys: [SimulatedKey]
    private(set) var marks: MarkTable
    /// The marks of this run that may turn out to cover nothing.
    private var unconfirmedMarks = UnconfirmedMarks()
    /// All marks, including dropped ones, as a start restores them.
    private var markList: [InvalidationMark]
    /// The version below which every entry must be revalidated, whatever staleness is permitted.
    private(set) var validateBefore: InvalidationVersion
    /// The memory tier, by key.
    var memory: [SimulatedEntry?]
    /// The newest records on disk, by key; empty until the disk is scanned.
    var index: [SimulatedEntry?]
    private(set) var isScanned = false
    /// The entries being re-inserted, by key.
    var reinserting: [SimulatedEntry?]

    /// Creates the cache of a process that starts from `storage`.
    init(_ storage: SimulatedStorage, keys: [SimulatedKey]) {
        self.keys = keys
        markList = storage.marks
        marks = MarkTable(storage.marks)
        validateBefore = storage.validateBefore
        memory = Array(repeating: nil, count: keys.count)
        index = memory
        reinserting = memory
    }

    /// Returns the stored entry of a key, from memory if it is there.
    subscript(key: Int) -> SimulatedEntry? { memory[key] ?? index[key] }

    /// Stores an entry in memory; returns false if memory holds a later one.
    mutating func insert(_ entry: SimulatedEntry) -> Bool {
        if let held = memory[entry.key], held.invalidationVersion > entry.invalidationVersion {
            return false
        }
        memory[entry.key] = entry
        return true
    }

    /// Returns the permitted use of an entry at a time on the node's clock; `nil` if the entry is
    /// purged.
    func reuse(of entry: SimulatedEntry, isFenced: Bool, at now: Instant) -> ReuseDecision? {
        let effect = effect(on: entry)
        guard effect != .purged else { return nil }
        if isFenced { return .validate }
        let isFresh = now < entry.freshUntil
        if isFresh, effect == nil { return .fresh }
        // Dropped records may have been hard purges, so no staleness is allowed.
        guard entry.invalidationVersion >= validateBefore else { return .validate }
        let staleFrom = isFresh ? now : entry.freshUntil
        return now < staleFrom + keys[entry.key].staleWhileRevalidate ? .stale : .validate
    }

    // MARK: Marks

    /// Returns the effect of the marks on an entry; `nil` if none.
    func effect(on entry: SimulatedEntry) -> InvalidationMark.Effect? {
        effect(on: entry.key, entry.invalidationVersion)
    }

    /// Returns the effect of marks on a response whose request began at version `begun`.
    func effect(on key: Int, _ begun: InvalidationVersion) -> InvalidationMark.Effect? {
        marks.effect(on: keys[key].url, tags: keys[key].tags, version: begun)
    }

    /// Adds marks and drops the entries in memory that they purge.
    ///
    /// With `isFloor` all older entries must be revalidated, whatever staleness is permitted.
    mutating func apply(_ marks: [InvalidationMark], isFloor: Bool) {
        for mark in marks {
            let slot = self.marks.apply(mark)
            markList.append(mark)
            if case .url(let name) = mark.target, let slot {
                unconfirmedMarks.insert(name, slot, mark.version)
            }
            if isFloor { validateBefore = mark.version }
        }
        for key in keys.indices {
            guard let entry = memory[key], effect(on: entry) == .purged else { continue }
            memory[key] = nil
        }
    }

    /// Removes all marks, which is a deliberate fault.
    mutating func removeMarks() {
        markList = []
        marks = MarkTable()
    }

    /// Drops the marks of URLs up to `version` for which nothing is held that they could cover, and
    /// returns their number.
    mutating func dropUnusedMarks(
        upTo version: InvalidationVersion, onDisk stored: [SimulatedEntry]
    ) -> Int {
        let due = unconfirmedMarks.remove(upTo: version)
        let held = (memory + reinserting).compactMap(\.self) + stored
        let names = Set(held.map { URLName.fingerprint(keys[$0.key].urlName[...]) })
        let unused = due.filter { !names.contains($0.fingerprint) }
        for young in unused { marks.forget(young.slot, upTo: young.version) }
        return unused.count
    }

    /// Drops the marks that are older than everything stored or in transfer, of which `oldest` is
    /// the oldest in transfer.
    ///
    /// Does nothing before the disk is scanned, and while there are few marks.
    mutating func dropOldMarks(
        inTransferSince oldest: InvalidationVersion, _ storage: inout SimulatedStorage
    ) {
        guard isScanned, markList.count > 40 else { return }
        let held = memory.compactMap(\.self) + storage.entries
        let least = held.reduce(oldest) { min($0, $1.invalidationVersion) }
        markList.removeAll { $0.version <= least }
        storage.marks.removeAll { $0.version <= least }
        marks.fold(upTo: least)
    }

    // MARK: The disk tier

    /// Writes an entry to disk and indexes it.
    mutating func append(
        _ entry: SimulatedEntry, to storage: inout SimulatedStorage, at now: Instant
    ) {
        var entry = entry
        storage.sequence += 1
        entry.sequence = storage.sequence
        entry.writtenAt = now
        storage.entries.append(entry)
        index[entry.key] = entry
    }

    /// Completes the disk scan after a start: the newest record of each key is indexed.
    mutating func scan(_ storage: SimulatedStorage) {
        isScanned = true
        // The boot clock continues, since no machine image is restored.
        for entry in storage.entries
        where index[entry.key].map({ $0.sequence < entry.sequence }) ?? true {
            index[entry.key] = entry
        }
    }

    /// Re-inserts an entry of a reclaimed segment; records older than a synced one are dropped with
    /// their segment.
    mutating func reinsert(
        _ entry: SimulatedEntry, into storage: inout SimulatedStorage, at now: Instant
    ) {
        append(entry, to: &storage, at: now)
        let stored = storage.entries
        func isSuperseded(_ old: SimulatedEntry) -> Bool {
            stored.contains {
                $0.key == old.key && $0.sequence > old.sequence
                    && now - $0.writtenAt > .milliseconds(200)
            }
        }
        let newest = storage.sequence
        storage.entries.removeAll {
            $0.key == entry.key && $0.sequence != newest && now - $0.writtenAt > .seconds(1)
                && isSuperseded($0)
        }
    }
}
