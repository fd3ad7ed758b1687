package import Ground

/// The decisions of the invalidation log: what is numbered, kept, sent, requested and confirmed
/// (Design, "Streams").
///
/// The caller delivers events and carries out the effects in order. A record is applied on arrival
/// even if earlier ones are missing, because marks can be applied in any order. It counts for
/// positions and receipts only when it is synced and no earlier record of its stream is missing.
///
/// Invariants: A number of this process is assigned once. A position never covers what was not
/// synced here. A process applies every record once, unless its stream was retired and forgotten in
/// between.
package struct InvalidationLog: Sendable {
    /// This node.
    package let node: NodeID
    /// This process, which names this node's own stream.
    package let process: ProcessID
    /// The limits and delays.
    package let settings: Settings
    var streams: StreamTable
    var applied = AppliedInvalidations()
    var peers = PeerTable()
    var receipts: ReceiptTracker
    var confirmations: ConfirmationQueue
    /// The events that the fence has not received yet, in order.
    var events: [FenceEvent] = []

    /// Creates the log of a node that starts.
    ///
    /// Persisted records are not applied again, because the disk has their marks, too.
    ///
    /// - Parameters:
    ///   - node: This node.
    ///   - process: A new process id.
    ///   - settings: The limits and delays.
    ///   - persisted: What the disk had.
    ///   - now: The current time.
    package init(
        node: NodeID, process: ProcessID, settings: Settings = Settings(),
        persisted: PersistedLog = PersistedLog(), now: Instant
    ) {
        self.node = node
        self.process = process
        self.settings = settings
        streams = StreamTable(
            own: process, persisted: persisted, retiredMax: settings.retiredMax, at: now)
        receipts = ReceiptTracker(own: node, process: process, settings: settings)
        confirmations = ConfirmationQueue(nextToAllAt: now)
        restore(persisted.records, now: now)
    }

    /// Adds further persisted records; must be called before any event.
    package mutating func restore(_ records: [InvalidationRecord], now: Instant) {
        streams.restore(records, at: now)
        receipts.synced(syncedPositions, at: now)
    }

    // MARK: Positions

    /// The count of invalidations applied since the start.
    package var appliedCount: UInt64 { applied.history.count }

    /// The positions synced here without a gap, by process, for gossip and confirmations.
    package var syncedPositions: [StreamPosition] { streams.syncedPositions }

    /// The greatest numbers applied here, with or without gaps, by process.
    package var appliedPositions: [StreamPosition] { streams.appliedPositions }

    /// Returns true if this node lacks something that the positions cover.
    package func lags(behind positions: [StreamPosition]) -> Bool {
        positions.contains(where: streams.lags)
    }

    /// Returns the record, or `nil` if it is not held.
    package func record(_ name: RecordID) -> InvalidationRecord? { streams.record(name) }

    /// Returns the record that is held with this client id, or `nil`.
    package func record(withClientID id: [UInt8]) -> RecordID? {
        streams.record(withClientID: id)?.id
    }

    /// The number of records held.
    package var heldCount: Int { streams.heldCount }
    /// The size of the records held in bytes, plus 64 for each.
    package var heldBytes: Int { streams.heldBytes }
    /// The number of streams, without retired ones.
    package var streamsCount: Int { streams.count }
    /// The number of positions that are kept as other members reported or confirmed them.
    package var reportedCount: Int { peers.reportedCount + receipts.confirmedCount }
    /// The size of what waits to be synced, in bytes.
    package var unsyncedBytes: Int { applied.writes.bytesCount }

    // MARK: Internals

    /// True if so much waits to be synced that nothing more is accepted.
    var isFull: Bool { unsyncedBytes >= settings.unsyncedBytesMax }

    /// Starts the next batch if it is due; must be called last in each event.
    package mutating func flush(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        let batch = applied.writes.nextBatch(at: now, interval: settings.delays.batch(after:))
        if let batch { effects.append(.write(batch)) }
    }

    /// True if ``takeOutput()`` returns something.
    var hasOutput: Bool { !applied.changedStreams.isEmpty || !events.isEmpty }

    /// Removes and returns the results for the fence: streams in which something was applied, and
    /// events in order.
    package mutating func takeOutput() -> (applied: Set<ProcessID>, events: [FenceEvent]) {
        defer { applied.changedStreams = [] }
        return (applied.changedStreams, events.takeAll())
    }

    /// The members that this node knows, including itself, by id; a confirmation names them.
    package var knownMembers: [NodeID] { receipts.members.ownMembers }

    /// Removes and returns the confirmations to send.
    package mutating func takeConfirmations() -> [(positions: [StreamPosition], nodes: [NodeID])] {
        confirmations.takeAll()
    }
}

/// The contents of an invalidation log as read from disk.
///
/// Records and floors are in any order, retired streams in the order of retirement.
package struct PersistedLog: Hashable, Sendable {
    /// The records.
    package var records: [InvalidationRecord]
    /// The positions from ``LogWrite/floor(_:count:)`` and ``LogMetadataUpdate/dropped(_:)``.
    package var floors: [StreamPosition]
    /// The positions from ``LogMetadataUpdate/retired(_:)``, in that order.
    package var retired: [StreamPosition]

    /// Creates a persisted log from its parts.
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
    /// The limits and delays of a log.
    package struct Settings: Hashable, Sendable {
        /// The number of records that are kept regardless of age.
        package var recordsMin = 1_000_000
        /// The age up to which records are kept regardless of their number.
        package var ageMin = Interval.seconds(86_400)
        /// The maximum size of records in bytes, plus 64 for each, regardless of the two limits
        /// above.
        package var bytesMax = 256 << 20
        /// The maximum number of streams; beyond it those of dead processes are retired early.
        package var streamsMax = 1_024
        /// The maximum number of retired streams remembered; must exceed ``streamsMax``.
        package var retiredMax = 4_096
        /// The size in bytes of what may wait to be synced before nothing more is accepted.
        package var unsyncedBytesMax = 64 << 20
        /// The additional size in bytes for invalidations of this node alone, before everything is
        /// marked soft instead.
        package var localBytesMax = 16 << 20
        /// The maximum number of ranges in one repair request.
        package var rangesMax = 64
        /// The delays.
        package var delays = LogDelays()
        /// The difference between ``Receipt/boundedAt`` and ``Receipt/majorityAt``.
        package var fenceDuration = Interval.seconds(10)
        /// The absence after which receipts do not wait for a member that never was a voter.
        package var removeAfter = Interval.seconds(3_600)

        /// Creates the default settings.
        package init() {}

        /// The maximum number of positions accepted from a peer in one message.
        var positionsMax: Int { streamsMax + retiredMax }
    }
}

/// Timers.
extension InvalidationLog {
    /// When ``ticked(now:effects:)`` is due; changes with every event.
    package var nextTick: Instant {
        let waits: [Instant?] = [
            streams.nextRepairAt, applied.writes.dueAt, receipts.members.nextReview,
        ]
        return waits.reduce(confirmations.nextDue) { min($0, $1 ?? $0) }
    }

    /// Processes the steps that are due at `now`; an early call is harmless.
    package mutating func ticked(now: Instant, effects: inout [InvalidationEffect]) {
        sendRepairRequests(now, &effects)
        confirmations.sendDue(to: peers, from: streams, at: now)
        let isDue = confirmations.sendToAll(
            peers.connected, naming: knownMembers, from: &streams, settings.delays, at: now)
        if isDue {
            trim(now)
            retireOld(now, &effects)
            var retirable = RetirableStreams(unchangedSince: now)
            retireSurplus(over: settings.streamsMax, &retirable, for: nil, now, &effects)
        }
        if let dueAt = receipts.members.nextReview, dueAt <= now { reviewMembers(now, &effects) }
    }
}

/// The delays of a log, by which one sync, frame or event serves many records.
package struct LogDelays: Hashable, Sendable {
    /// The delay before missing records are requested, for a push that may be under way.
    package var repairRequest = Interval.milliseconds(20)
    /// The time after which an unanswered repair request is sent to another member.
    package var repairTimeout = Interval.seconds(1)
    /// The minimum interval between confirmations to all members, by which a missed push is
    /// detected.
    package var confirmAll = Interval.milliseconds(400)
    /// The maximum interval between confirmations to all members.
    package var confirmAllMax = Interval.seconds(10)
    /// The number of members up to which confirmations are sent at once; each further one adds
    /// ``confirm``.
    package var immediateMembersMax = 8
    /// The delay of confirmations for each member beyond ``immediateMembersMax``.
    package var confirm = Interval.milliseconds(1)
    /// The interval between the starts of two batches, for each record of the first one.
    ///
    /// What arrives meanwhile is synced with the second batch; a lone record does not wait.
    package var batch = Interval.milliseconds(2)
    /// The maximum interval between the starts of two batches.
    package var batchMax = Interval.milliseconds(5)
    /// The delay before a failed write is repeated.
    package var failedWrite = Interval.seconds(1)

    /// Creates the default delays.
    package init() {}

    /// Returns the delay of confirmations with `count` other members; it adds to receipts.
    func confirm(others count: Int) -> Interval {
        Interval(nanoseconds: confirm.nanoseconds * Int64(max(0, count - immediateMembersMax)))
    }

    /// Returns the interval until the next batch, after one of `count` records.
    ///
    /// From 500 records a second on, each batch waits for the maximum.
    func batch(after count: Int) -> Interval {
        min(batchMax, Interval(nanoseconds: batch.nanoseconds * Int64(count)))
    }

    /// Returns the interval until all are confirmed to again, after `count` positions times
    /// members.
    ///
    /// The rate is limited to 6,250 positions a second.
    func confirmAll(after count: Int) -> Interval {
        let span = Interval(nanoseconds: confirmAll.nanoseconds * Int64(max(2_500, count)) / 2_500)
        return min(span, max(confirmAll, confirmAllMax))
    }
}
