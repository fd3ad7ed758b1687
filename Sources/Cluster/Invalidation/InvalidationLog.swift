package import Ground

/// The decisions of the invalidation log: what is numbered, kept, told, asked for and confirmed.
///
/// The shell tells what happened and does what comes out, in order. A record is applied the moment
/// it comes, whatever is missing before it, for applying is a matter of marks whose order does not
/// count; it is *had*, that is told to others as a position and counted in receipts, only when it
/// is synced and nothing before it is missing.
///
/// Invariants: a number of this process is given to one record only; a position never covers what
/// was not synced here; every record is applied once by a process, unless its stream was retired
/// and forgotten in between.
package struct InvalidationLog: Sendable {
    package let node: NodeID
    /// This node's own stream.
    package let process: ProcessID
    package let settings: Settings
    var streams = StreamTable()
    var retired: RetiredStreams
    var writes = WriteQueue()
    var recent = RecentApplications()
    var ids = ClientIDs()
    /// Members that this node is connected with.
    var lines = SortedTable<NodeID, PeerLine>()
    /// What members told of having applied and this node lacks.
    var ahead = SortedTable<NodeID, SortedTable<ProcessID, UInt64>>()
    var members: MemberTracker
    var confirmations: Confirmations
    /// The numbers of this node's own records of the count, ascending: they have no receipts.
    var ownCounts: [UInt64] = []
    /// No receipt of this node's own records up to this number is pending, or was.
    var settledCount: UInt64 = 0
    var nextConfirm: Instant
    var owed = OwedConfirmations()
    /// The members that all were told last of.
    var confirmedMembers: [NodeID] = []
    /// What the fence is yet to be told of, and the members.
    var news = LogNews()

    /// A node's log after a start: `process` is new, `kept` is what the disk had.
    ///
    /// What was kept is not applied again: the disk had its stamps, too.
    package init(
        node: NodeID, process: ProcessID, settings: Settings = Settings(),
        kept: KeptLog = KeptLog(), now: Instant
    ) {
        self.node = node
        self.process = process
        self.settings = settings
        retired = RetiredStreams(countMax: settings.retiredMax)
        members = MemberTracker(own: node, process: process, settings: settings)
        confirmations = Confirmations(own: process)
        nextConfirm = now
        _ = streams.add(process, at: now)
        for position in kept.retired where position.count > 0 { _ = retired.add(position) }
        for position in kept.floors where position.process != process {
            guard position.count > retired[position.process] ?? 0 else { continue }
            let place = streams.place(of: position.process) ?? addStream(position.process, now)
            streams[place].begin(behind: position.count, at: now)
        }
        keep(kept.records, now: now)
    }

    /// Further records that the disk had; to be told before anything else has happened.
    package mutating func keep(_ records: [InvalidationRecord], now: Instant) {
        for record in records where record.name.stream != process {
            let name = record.name
            guard name.number > retired[name.stream] ?? 0 else { continue }
            // One that went on after it was retired begins where it had ended.
            let place = streams.place(of: name.stream) ?? addStream(name.stream, now)
            guard !streams[place].applied.contains(name.number) else { continue }
            streams[place].keep(record, count: 0, at: now)
            streams[place].synced(name.number...name.number)
            ids.add(record)
        }
        let had = positions
        _ = confirmations.add(had, members: [], by: node, at: now)
    }

    // MARK: Knowledge

    /// The count of invalidations applied since the start.
    package var appliedCount: UInt64 { recent.count }

    /// What is synced here without a gap, by process: what gossip and confirmations carry.
    package var positions: [StreamPosition] {
        streams.streams.map(\.position).filter { $0.count > 0 }
    }

    /// How far this node has applied, whatever is missing; by process.
    package var reaches: [StreamPosition] {
        streams.streams.map(\.reach).filter { $0.count > 0 }
    }

    /// Up to where a stream is applied here without a gap; nil if it is not known, or retired.
    func appliedPosition(of process: ProcessID) -> StreamPosition? {
        streams.place(of: process).map {
            StreamPosition(process: process, count: streams[$0].applied.prefix)
        }
    }

    /// This node lacks something that these positions name.
    package func lags(behind positions: [StreamPosition]) -> Bool {
        positions.contains { lags(behind: $0) }
    }

    func lags(behind position: StreamPosition) -> Bool {
        guard position.count > 0, position.count > retired[position.process] ?? 0 else {
            return false
        }
        guard let place = streams.place(of: position.process) else { return true }
        return streams[place].applied.prefix < position.count
    }

    /// The record, if it is held.
    package func record(_ name: RecordName) -> InvalidationRecord? {
        streams.place(of: name.stream).flatMap { streams[$0].record(name.number) }
    }

    /// What the count of invalidations applied was with this record; nil if it is not held, 0 if
    /// it was kept from before the start.
    package func count(of name: RecordName) -> UInt64? {
        streams.place(of: name.stream).flatMap { streams[$0].shelf.slot(name.number)?.count }
    }

    /// The record that is held with this client's id.
    package func record(withID id: [UInt8]) -> RecordName? {
        guard let name = ids.candidate(for: id), let content = record(name)?.content,
            Invalidation.id(in: content.span) == id
        else { return nil }
        return name
    }

    /// Records that are held.
    package var heldCount: Int { streams.streams.reduce(0) { $0 + $1.shelf.count } }
    /// Bytes of them, with 64 for each.
    package var heldBytes: Int { streams.streams.reduce(0) { $0 + $1.shelf.bytesCount } }
    package var streamsCount: Int { streams.count }
    /// Bytes that wait to be synced.
    package var unsyncedBytes: Int { writes.bytesCount }

    // MARK: Inside

    /// As much waits to be synced as may: nothing is taken.
    var isFull: Bool { writes.bytesCount >= settings.unsyncedBytesMax }

    /// To be called last in each event: what is to be written of it.
    package mutating func flush(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        let batch = writes.next(at: now, interval: settings.delays.batch(after:))
        if let batch { effects.append(.write(batch)) }
    }

    /// What the fence is to be told since it was told last: of which streams something was applied,
    /// and what else, in its order.
    package mutating func takeNews() -> (applied: Set<ProcessID>, events: [FenceEvent]) {
        defer { (news.applied, news.events) = ([], []) }
        return (news.applied, news.events)
    }

    /// Whom this node has for members, itself included, by id: a confirmation names them.
    package var recordedMembers: [NodeID] { members.recorded }

    /// What is to be confirmed since it was taken last, and to whom.
    package mutating func takeConfirmations() -> [(positions: [StreamPosition], nodes: [NodeID])] {
        news.confirmations.takeAll()
    }
}

/// What a log has come to that others in its node are yet to be told of.
struct LogNews: Sendable {
    var applied: Set<ProcessID> = []
    var events: [FenceEvent] = []
    var confirmations: [(positions: [StreamPosition], nodes: [NodeID])] = []

    /// There is nothing for the fence.
    var isEmpty: Bool { applied.isEmpty && events.isEmpty }

    /// There are two contents under this name, or a record of this process that it did not issue.
    mutating func contradicted(_ name: RecordName) {
        events.append(.contradicted(name.position))
    }
}

/// What the disk has kept of a log; in any order.
package struct KeptLog: Hashable, Sendable {
    package var records: [InvalidationRecord]
    /// From ``LogWrite/floor(_:count:)`` and ``LogNote/dropped(_:)``.
    package var floors: [StreamPosition]
    /// From ``LogNote/retired(_:)``, in that order.
    package var retired: [StreamPosition]

    package init(
        records: [InvalidationRecord] = [], floors: [StreamPosition] = [],
        retired: [StreamPosition] = []
    ) {
        self.records = records
        self.floors = floors
        self.retired = retired
    }
}
