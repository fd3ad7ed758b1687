import Ground

/// The streams that this node knows, live and retired, with the records that it holds of them.
///
/// Live streams are modified in place because they may be large.
struct StreamTable: Sendable {
    /// This process, whose own stream is always live.
    let own: ProcessID
    /// The live streams, ascending by process.
    private(set) var live: [InvalidationStream] = []
    private(set) var retired: RetiredStreams
    private var clientIDs = ClientIDIndex()

    /// Creates the table of a process that starts with what the disk had, without its records.
    init(own: ProcessID, persisted: PersistedLog, retiredMax: Int, at now: Instant) {
        self.own = own
        retired = RetiredStreams(countMax: retiredMax)
        add(own, at: now)
        for position in persisted.retired where position.count > 0 { _ = retired.add(position) }
        for position in persisted.floors where position.process != own && !isRetired(position) {
            let place = index(of: position.process) ?? add(position.process, at: now)
            live[place].start(after: position.count, at: now)
        }
    }

    /// Adds records that the disk had, except those of this process.
    mutating func restore(_ records: [InvalidationRecord], at now: Instant) {
        for record in records where record.id.stream != own && !isRetired(record.id.position) {
            let (process, number) = (record.id.stream, record.id.number)
            let place = index(of: process) ?? add(process, at: now)
            guard !live[place].applied.contains(number) else { continue }
            insert(record, to: place, at: now)
            live[place].markSynced(number...number)
        }
    }

    // MARK: Streams

    var indices: Range<Int> { live.indices }
    var count: Int { live.count }

    subscript(place: Int) -> InvalidationStream {
        get { live[place] }
        _modify { yield &live[place] }
    }

    /// Returns the index of a live stream, or `nil`.
    func index(of process: ProcessID) -> Int? {
        let place = live.partitionPoint { $0.process < process }
        return place < live.count && live[place].process == process ? place : nil
    }

    /// Returns the stream of `process` if it is live.
    func stream(of process: ProcessID) -> InvalidationStream? {
        index(of: process).map { live[$0] }
    }

    /// Adds a stream of `process`, which must not be live, and returns its index; a retired stream
    /// continues behind its last number.
    @discardableResult
    mutating func add(_ process: ProcessID, at now: Instant) -> Int {
        let place = live.partitionPoint { $0.process < process }
        live.insert(InvalidationStream(process, at: now), at: place)
        if let last = retired.revive(process) { live[place].start(after: last, at: now) }
        return place
    }

    /// Drops the records of a stream and keeps its last position, which asserts that all of it was
    /// applied.
    ///
    /// - Returns: The retired stream that is forgotten for it, if any.
    mutating func retire(_ place: Int) -> ProcessID? {
        while !live[place].records.isEmpty { dropFirst(place) }
        let last = live[place].appliedPosition
        live.remove(at: place)
        return last.count > 0 ? retired.add(last) : nil
    }

    // MARK: Positions

    /// The positions synced here without a gap, by process.
    var syncedPositions: [StreamPosition] {
        live.map(\.syncedPosition).filter { $0.count > 0 }
    }

    /// The greatest numbers applied here, with or without gaps, by process.
    var appliedPositions: [StreamPosition] {
        live.map(\.appliedPosition).filter { $0.count > 0 }
    }

    /// The number up to which this process's own records are synced here.
    var ownSyncedCount: UInt64 { stream(of: own)?.synced.prefix ?? 0 }

    /// Returns the positions of `processes` synced here without a gap, omitting those at 0.
    func syncedPositions(of processes: [ProcessID]) -> [StreamPosition] {
        processes.compactMap { stream(of: $0)?.syncedPosition }.filter { $0.count > 0 }
    }

    /// Returns true if the position is in a live stream.
    ///
    /// Reports of other streams are not kept: a stream that gets a place later shows a member as
    /// pending until its next report, or until it connects again. A process's own stream is live.
    func isLive(_ position: StreamPosition) -> Bool { index(of: position.process) != nil }

    /// Returns true if the position is in a retired stream, which was applied completely.
    func isRetired(_ position: StreamPosition) -> Bool {
        position.count <= retired[position.process] ?? 0
    }

    /// Returns true if this node lacks something that the position covers.
    func lags(behind position: StreamPosition) -> Bool {
        guard position.count > 0, !isRetired(position) else { return false }
        return stream(of: position.process).map { $0.applied.prefix < position.count } ?? true
    }

    /// Removes and returns the positions that were not yet confirmed to all members.
    mutating func takeConfirmable() -> [StreamPosition] {
        var positions: [StreamPosition] = []
        for place in indices where live[place].isConfirmDue {
            live[place].isConfirmDue = false
            positions.append(live[place].syncedPosition)
        }
        return positions.filter { $0.count > 0 }
    }

    // MARK: Records

    /// The number of records held.
    var heldCount: Int { live.reduce(0) { $0 + $1.records.count } }
    /// The size of the records held in bytes, plus 64 for each.
    var heldBytes: Int { live.reduce(0) { $0 + $1.records.bytesCount } }

    /// Returns the record, or `nil` if it is not held.
    func record(_ name: RecordID) -> InvalidationRecord? {
        stream(of: name.stream)?.record(name.number)
    }

    /// Returns the metadata of a record, or `nil` if it is not held.
    func slot(_ name: RecordID) -> RecordTable.Slot? {
        stream(of: name.stream)?.records.slot(name.number)
    }

    /// Returns the record that is held with this client id, or `nil`.
    func record(withClientID id: [UInt8]) -> InvalidationRecord? {
        guard let record = clientIDs.candidate(for: id).flatMap(record),
            Invalidation.clientID(in: record.encodedContent.span) == id
        else { return nil }
        return record
    }

    /// Returns the purges that arrived last, at most `countMax`, newest first.
    func lastPurges(_ countMax: Int) -> [RecordID] {
        var found: [(since: Instant, name: RecordID)] = []
        for stream in live {
            // Consensus records lie between them.
            let slots = stream.records.last(countMax) { !Invalidation.isConsensus($0) }
            found += slots.map {
                ($0.heldSince, RecordID(stream: stream.process, number: $0.number))
            }
        }
        found.sort {
            ($1.since, $1.name.stream, $1.name.number) < ($0.since, $0.name.stream, $0.name.number)
        }
        return found.prefix(countMax).map(\.name)
    }

    /// Adds a record that is new here to its stream at `place`.
    mutating func insert(_ record: InvalidationRecord, to place: Int, at now: Instant) {
        live[place].insert(record, at: now)
        clientIDs.add(record)
    }

    // MARK: Dropping records

    /// Treats everything up to the position as applied, with no records held.
    mutating func raiseFloor(to floor: StreamPosition, at now: Instant) {
        // Even beyond the limit of streams: it must not be requested again and again.
        let place = index(of: floor.process) ?? add(floor.process, at: now)
        while let first = live[place].records.first, first.number <= floor.count {
            dropFirst(place)
        }
        live[place].raiseFloor(to: floor.count, at: now)
        live[place].setFloor(floor.count)
    }

    /// Drops the synced records up to the position and returns the stream's new floor; `nil` if
    /// there was nothing to drop.
    mutating func drop(upTo position: StreamPosition) -> StreamPosition? {
        guard let place = index(of: position.process) else { return nil }
        let before = live[place].floor
        while let first = live[place].droppable, first.number <= position.count {
            dropFirst(place)
        }
        let floor = live[place].floor
        return floor > before ? StreamPosition(process: position.process, count: floor) : nil
    }

    /// Drops the oldest records while there are more than the limits allow, and returns the new
    /// floors.
    mutating func trim(_ settings: InvalidationLog.Settings, at now: Instant) -> [StreamPosition] {
        var count = heldCount
        var bytes = heldBytes
        var dropped: Set<ProcessID> = []
        while let place = oldestDroppableIndex, let first = live[place].droppable {
            let isOld = now - first.heldSince > settings.ageMin
            guard bytes > settings.bytesMax || (count > settings.recordsMin && isOld) else { break }
            bytes -= live[place].records.bytesCount
            dropFirst(place)
            bytes += live[place].records.bytesCount
            count -= 1
            dropped.insert(live[place].process)
        }
        return live.filter { dropped.contains($0.process) }
            .map { StreamPosition(process: $0.process, count: $0.floor) }
    }

    /// The index of the stream with the oldest record that may be dropped.
    private var oldestDroppableIndex: Int? {
        var oldest: (place: Int, heldSince: Instant)?
        for place in indices {
            guard let first = live[place].droppable else { continue }
            if let before = oldest, before.heldSince <= first.heldSince { continue }
            oldest = (place, first.heldSince)
        }
        return oldest?.place
    }

    /// Drops the first held record of a stream, with its client id.
    private mutating func dropFirst(_ place: Int) {
        guard let (number, content) = live[place].removeFirst() else { return }
        clientIDs.remove(RecordID(stream: live[place].process, number: number), content)
    }
}

/// The retired streams: streams of dead processes of which no records are held.
///
/// All voters have them, unless they were retired early because there were too many. Only the last
/// number is kept, so that neither gossip nor a returning node revives the stream. Bounded; the
/// first retired is forgotten first. While more of these are kept than there may be streams, a
/// returning node that lacks any lacks one that is kept.
struct RetiredStreams: Sendable {
    private var counts = SortedTable<ProcessID, UInt64>()
    /// The streams in order of retirement.
    private var order: [ProcessID] = []
    let countMax: Int

    init(countMax: Int) {
        self.countMax = countMax
    }

    /// The last number of a stream; `nil` if it is not retired.
    subscript(process: ProcessID) -> UInt64? { counts[process] }

    var positions: [StreamPosition] {
        zip(counts.keys, counts.values).map { StreamPosition(process: $0, count: $1) }
    }

    /// Adds a stream and returns the one that was dropped for it, if any.
    mutating func add(_ position: StreamPosition) -> ProcessID? {
        if counts[position.process] == nil { order.append(position.process) }
        counts[position.process] = max(position.count, counts[position.process] ?? 0)
        guard counts.count > countMax else { return nil }
        let forgotten = order.removeFirst()
        counts[forgotten] = nil
        return forgotten
    }

    /// Removes a stream that continues and returns its last number; `nil` if it was not retired.
    mutating func revive(_ process: ProcessID) -> UInt64? {
        guard let count = counts[process] else { return nil }
        counts[process] = nil
        order.removeAll { $0 == process }
        return count
    }
}

/// The streams of dead processes that one event may retire, so that others have a place.
///
/// They are searched once an event, because an event may bring thousands of new streams.
struct RetirableStreams {
    /// The streams unchanged since then may be retired, for a stream of a member also others.
    private let deadline: Instant
    /// The processes of members; `nil` before the search.
    private var members: Set<ProcessID>?
    /// The streams, the one unchanged longest first.
    private var found: [(process: ProcessID, changedAt: Instant)] = []
    /// The number of elements at the beginning of `found` that were taken.
    private var takenCount = 0

    init(unchangedSince deadline: Instant) {
        self.deadline = deadline
    }

    /// Searches the streams, unless that was done.
    mutating func search(_ streams: StreamTable, _ tracker: MemberTracker) {
        guard self.members == nil else { return }
        let members = tracker.processes
        self.members = members
        found = streams.live.lazy.filter { $0.isRetirable(members) }.map {
            ($0.process, $0.changedAt)
        }
        found.sort { ($0.changedAt, $0.process) < ($1.changedAt, $1.process) }
    }

    /// Removes and returns the stream unchanged longest; `nil` if none may be retired for
    /// `newcomer`.
    mutating func next(in streams: StreamTable, for newcomer: ProcessID?) -> ProcessID? {
        let isMember = newcomer.map { members?.contains($0) ?? false } ?? false
        while takenCount < found.count, isMember || found[takenCount].changedAt <= deadline {
            defer { takenCount += 1 }
            let process = found[takenCount].process
            // It may have got a record in the meantime.
            if streams.stream(of: process)?.isUnsynced == false { return process }
        }
        return nil
    }

    /// Adds a stream that is new, and so changed last, unless it is a member's.
    mutating func append(_ process: ProcessID, at now: Instant) {
        if members?.contains(process) == false { found.append((process, now)) }
    }
}

/// The client ids of the records that are held.
struct ClientIDIndex: Sendable {
    /// The first held record for each hash of a client id.
    private var names: [UInt64: RecordID] = [:]

    /// Returns the held record whose client id has the same hash as `id`, or `nil`; its id may be
    /// another.
    func candidate(for id: [UInt8]) -> RecordID? { names[Self.hash(id)] }

    /// Adds a record, unless it has no client id or another held record has the same hash.
    mutating func add(_ record: InvalidationRecord) {
        let id = Invalidation.clientID(in: record.encodedContent.span)
        guard !id.isEmpty else { return }
        let hash = Self.hash(id)
        if names[hash] == nil { names[hash] = record.id }
    }

    /// Removes a record that is no longer held; `content` is its encoded content.
    mutating func remove(_ name: RecordID, _ content: [UInt8]) {
        let hash = Self.hash(Invalidation.clientID(in: content.span))
        if names[hash] == name { names[hash] = nil }
    }

    private static func hash(_ id: [UInt8]) -> UInt64 { XXH64.hash(id.span, seed: 0) }
}
