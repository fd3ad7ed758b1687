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
    var history = AppliedHistory()
    var clientIDs = ClientIDIndex()
    /// Members that this node is connected with.
    var peers = SortedTable<NodeID, PeerProgress>()
    /// What members told of having applied and this node lacks.
    var missingFromPeers = SortedTable<NodeID, SortedTable<ProcessID, UInt64>>()
    var members: MemberTracker
    var confirmations: Confirmations
    /// The numbers of this node's own records of the count, ascending: they have no receipts.
    var ownConsensusNumbers: [UInt64] = []
    /// No receipt of this node's own records up to this number is pending, or was.
    var settledNumber: UInt64 = 0
    var nextConfirmationAt: Instant
    var pendingConfirmations = PendingConfirmations()
    /// The members that all were told last of.
    var confirmedMembers: [NodeID] = []
    /// What the fence is yet to be told of, and the members.
    var output = LogOutput()

    /// A node's log after a start: `process` is new, `kept` is what the disk had.
    ///
    /// What was kept is not applied again: the disk had its stamps, too.
    package init(
        node: NodeID, process: ProcessID, settings: Settings = Settings(),
        persisted: PersistedLog = PersistedLog(), now: Instant
    ) {
        self.node = node
        self.process = process
        self.settings = settings
        retired = RetiredStreams(countMax: settings.retiredMax)
        members = MemberTracker(own: node, process: process, settings: settings)
        confirmations = Confirmations(own: process)
        nextConfirmationAt = now
        _ = streams.add(process, at: now)
        for position in persisted.retired where position.count > 0 { _ = retired.add(position) }
        for position in persisted.floors where position.process != process {
            guard position.count > retired[position.process] ?? 0 else { continue }
            let place = streams.index(of: position.process) ?? addStream(position.process, now)
            streams[place].start(after: position.count, at: now)
        }
        restore(persisted.records, now: now)
    }

    /// Further records that the disk had; to be told before anything else has happened.
    package mutating func restore(_ records: [InvalidationRecord], now: Instant) {
        for record in records where record.id.stream != process {
            let name = record.id
            guard name.number > retired[name.stream] ?? 0 else { continue }
            // One that went on after it was retired begins where it had ended.
            let place = streams.index(of: name.stream) ?? addStream(name.stream, now)
            guard !streams[place].applied.contains(name.number) else { continue }
            streams[place].insert(record, count: 0, at: now)
            streams[place].markSynced(name.number...name.number)
            clientIDs.add(record)
        }
        let had = syncedPositions
        _ = confirmations.record(had, members: [], by: node, at: now)
    }

    // MARK: Knowledge

    /// The count of invalidations applied since the start.
    package var appliedCount: UInt64 { history.count }

    /// What is synced here without a gap, by process: what gossip and confirmations carry.
    package var syncedPositions: [StreamPosition] {
        streams.streams.map(\.syncedPosition).filter { $0.count > 0 }
    }

    /// How far this node has applied, whatever is missing; by process.
    package var appliedPositions: [StreamPosition] {
        streams.streams.map(\.appliedPosition).filter { $0.count > 0 }
    }

    /// Up to where a stream is applied here without a gap; nil if it is not known, or retired.
    func appliedPosition(of process: ProcessID) -> StreamPosition? {
        streams.index(of: process).map {
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
        guard let place = streams.index(of: position.process) else { return true }
        return streams[place].applied.prefix < position.count
    }

    /// The record, if it is held.
    package func record(_ name: RecordID) -> InvalidationRecord? {
        streams.index(of: name.stream).flatMap { streams[$0].record(name.number) }
    }

    /// What the count of invalidations applied was with this record; nil if it is not held, 0 if
    /// it was kept from before the start.
    package func count(of name: RecordID) -> UInt64? {
        streams.index(of: name.stream).flatMap { streams[$0].records.slot(name.number)?.count }
    }

    /// The record that is held with this client's id.
    package func record(withClientID id: [UInt8]) -> RecordID? {
        guard let name = clientIDs.candidate(for: id), let content = record(name)?.content,
            Invalidation.clientID(in: content.span) == id
        else { return nil }
        return name
    }

    /// Records that are held.
    package var heldCount: Int { streams.streams.reduce(0) { $0 + $1.records.count } }
    /// Bytes of them, with 64 for each.
    package var heldBytes: Int { streams.streams.reduce(0) { $0 + $1.records.bytesCount } }
    package var streamsCount: Int { streams.count }
    /// Bytes that wait to be synced.
    package var unsyncedBytes: Int { writes.bytesCount }

    // MARK: Inside

    /// As much waits to be synced as may: nothing is taken.
    var isFull: Bool { writes.bytesCount >= settings.unsyncedBytesMax }

    /// To be called last in each event: what is to be written of it.
    package mutating func flush(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        let batch = writes.nextBatch(at: now, interval: settings.delays.batch(after:))
        if let batch { effects.append(.write(batch)) }
    }

    /// What the fence is to be told since it was told last: of which streams something was applied,
    /// and what else, in its order.
    package mutating func takeOutput() -> (applied: Set<ProcessID>, events: [FenceEvent]) {
        defer { (output.applied, output.events) = ([], []) }
        return (output.applied, output.events)
    }

    /// Whom this node has for members, itself included, by id: a confirmation names them.
    package var knownMembers: [NodeID] { members.ownMembers }

    /// What is to be confirmed since it was taken last, and to whom.
    package mutating func takeConfirmations() -> [(positions: [StreamPosition], nodes: [NodeID])] {
        output.confirmations.takeAll()
    }
}

/// What a log has come to that others in its node are yet to be told of.
struct LogOutput: Sendable {
    var applied: Set<ProcessID> = []
    var events: [FenceEvent] = []
    var confirmations: [(positions: [StreamPosition], nodes: [NodeID])] = []

    /// There is nothing for the fence.
    var isEmpty: Bool { applied.isEmpty && events.isEmpty }

    /// There are two contents under this name, or a record of this process that it did not issue.
    mutating func recordConflict(_ name: RecordID) {
        events.append(.recordConflictFound(name.position))
    }
}

/// What the disk has kept of a log; in any order.
package struct PersistedLog: Hashable, Sendable {
    package var records: [InvalidationRecord]
    /// From ``LogWrite/floor(_:count:)`` and ``LogMetadataUpdate/dropped(_:)``.
    package var floors: [StreamPosition]
    /// From ``LogMetadataUpdate/retired(_:)``, in that order.
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

extension InvalidationLog {
    /// The limits of a log and its pace.
    package struct Settings: Hashable, Sendable {
        /// So many records are kept however old they are.
        package var recordsMin = 1_000_000
        /// Records that are younger are kept however many they are.
        package var ageMin = Interval.seconds(86_400)
        /// The most bytes of records, with 64 for each, that are kept whatever the two above say.
        package var bytesMax = 256 << 20
        /// The most streams; beyond them those of dead processes are retired early.
        package var streamsMax = 1_024
        /// The most retired streams that are remembered; more than ``streamsMax``.
        package var retiredMax = 4_096
        /// The most bytes that may wait to be synced before nothing more is taken.
        package var unsyncedBytesMax = 64 << 20
        /// And beyond those what this node alone has invalidated, before everything is soft in its
        /// place.
        package var localBytesMax = 16 << 20
        /// Ranges that one member is asked for at once.
        package var rangesMax = 64
        package var delays = LogDelays()
        /// What ``ResponseTiming/boundedAt`` adds to ``ResponseTiming/majorityAt``.
        package var fenceDuration = Interval.seconds(10)
        /// Receipts do not wait for a member that never counted and has been away for so long.
        package var removeAfter = Interval.seconds(3_600)

        package init() {}

        /// Positions that are taken of one peer at once.
        var positionsMax: Int { streamsMax + retiredMax }
    }
}

/// What time brings.
extension InvalidationLog {
    /// When ``ticked(now:effects:)`` is to be called next.
    package var nextTick: Instant {
        var next = nextConfirmationAt
        for stream in streams.streams {
            if let repair = stream.repair { next = min(next, repair.dueAt) }
        }
        for dueAt in [pendingConfirmations.dueAt, writes.dueAt, members.nextReview] {
            if let dueAt { next = min(next, dueAt) }
        }
        return next
    }

    /// ``nextTick`` has come; coming earlier does no harm.
    package mutating func ticked(now: Instant, effects: inout [InvalidationEffect]) {
        sendRepairRequests(now, &effects)
        sendDueConfirmations(now)
        if nextConfirmationAt <= now {
            nextConfirmationAt =
                now + settings.delays.confirmAll(after: confirmToAll() * peers.count)
            trim(now)
            retireOld(now, &effects)
            retireSurplus(now, &effects)
        }
        if let dueAt = members.nextReview, dueAt <= now { reviewMembers(now, &effects) }
    }

    /// Tells every member what was synced since it was told last, and gives of how many streams.
    ///
    /// Receipts are seen everywhere by that, and streams retired.
    private mutating func confirmToAll() -> Int {
        var had: [StreamPosition] = []
        for place in streams.indices where streams[place].isConfirmDue {
            streams[place].isConfirmDue = false
            if streams[place].syncedPosition.count > 0 { had.append(streams[place].syncedPosition) }
        }
        guard !peers.isEmpty, !had.isEmpty || members.ownMembers != confirmedMembers else {
            return 0
        }
        confirmedMembers = members.ownMembers
        output.confirmations.append((had, peers.keys))
        return had.count
    }

    /// Tells those who gave records, or issued them, how far their streams are synced.
    mutating func sendDueConfirmations(_ now: Instant) {
        for (node, processes) in pendingConfirmations.takeDue(at: now) where peers[node] != nil {
            let had = positions(of: processes)
            if !had.isEmpty { output.confirmations.append((had, [node])) }
        }
    }

    /// How far these streams are synced here without a gap; without those whose first record is
    /// missing.
    func positions(of processes: [ProcessID]) -> [StreamPosition] {
        processes.compactMap { process in
            streams.index(of: process).map { streams[$0].syncedPosition }
        }.filter { $0.count > 0 }
    }
}

/// What an ``InvalidationLog`` waits for, so that a sync, a frame and a step serve many.
package struct LogDelays: Hashable, Sendable {
    /// What is missing is left so long to a push that may be on its way.
    package var repairRequest = Interval.milliseconds(20)
    /// Who has not answered after so long is not waited for.
    package var repairTimeout = Interval.seconds(1)
    /// Between two confirmations to all members, by which who has missed a push learns of it: where
    /// not very much is to be told, and at most.
    package var confirmAll = Interval.milliseconds(400)
    package var confirmAllMax = Interval.seconds(10)
    /// So many members are told at once what of theirs is synced; with each one more all are told
    /// ``confirm`` later, of everything until then.
    package var immediateMembersMax = 8
    package var confirm = Interval.milliseconds(1)
    /// Between the beginnings of two batches that are written, for each record that the first one
    /// has, and at most.
    ///
    /// What comes meanwhile is synced with the second; what comes alone does not wait.
    package var batch = Interval.milliseconds(2)
    package var batchMax = Interval.milliseconds(5)
    /// After a write that failed.
    package var failedWrite = Interval.seconds(1)

    package init() {}

    /// How long what is synced waits for more, for so many others: what that costs a receipt.
    func confirm(others count: Int) -> Interval {
        Interval(nanoseconds: confirm.nanoseconds * Int64(max(0, count - immediateMembersMax)))
    }

    /// Until another batch is begun, after one of so many records: of what comes 500 times a second
    /// or more each batch waits for the most.
    func batch(after count: Int) -> Interval {
        min(batchMax, Interval(nanoseconds: batch.nanoseconds * Int64(count)))
    }

    /// Until all are told again, after so many positions times so many members: as long as it takes
    /// at 6,250 positions a second.
    func confirmAll(after count: Int) -> Interval {
        let span = Interval(nanoseconds: confirmAll.nanoseconds * Int64(max(2_500, count)) / 2_500)
        return min(span, max(confirmAll, confirmAllMax))
    }
}
