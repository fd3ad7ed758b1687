import Cluster
import Ground

/// A node's log, with peers and a disk that the test controls.
struct LogStage {
    static let start = Instant(nanoseconds: 1_000_000_000)

    var log: InvalidationLog
    var now = LogStage.start

    /// The node 100 among connected members whose ids are their numbers.
    ///
    /// Batches are written without delay unless another `batchInterval` is given.
    init(
        members: ClosedRange<UInt64>? = nil, settings: InvalidationLog.Settings = .init(),
        kept: PersistedLog = PersistedLog(), batchInterval interval: Interval = .zero
    ) {
        var settings = settings
        settings.delays.batch = interval
        log = InvalidationLog(
            node: Self.id(100), process: Self.process(100), settings: settings, persisted: kept,
            now: Self.start)
        let others = members.map(Array.init) ?? []
        follow(others + [100])
        for number in others { connect(number) }
    }

    /// A log that has issued and synced a purge.
    static func issued(members: ClosedRange<UInt64>? = nil) -> LogStage {
        var stage = LogStage(members: members)
        _ = stage.issue(purge("a"))
        stage.synced()
        return stage
    }

    static func id(_ number: UInt64) -> NodeID { NodeID(low: number, high: 0) }
    static func process(_ number: UInt64) -> ProcessID { ProcessID(high: number, low: 0) }

    static func position(_ number: UInt64, _ count: UInt64) -> StreamPosition {
        StreamPosition(process: process(number), count: count)
    }

    static func name(_ number: UInt64, _ count: UInt64) -> RecordID {
        RecordID(stream: process(number), number: count)
    }

    static func purge(_ id: String, _ url: String = "http://a.example/1") -> Invalidation {
        Invalidation(id: Array(id.utf8), .purge(Purge(.hard, [.url(Array(url.utf8))])))
    }

    /// A record of another node.
    static func record(_ number: UInt64, _ count: UInt64) -> InvalidationRecord {
        let content = try? purge("\(number)/\(count)").content()
        return InvalidationRecord(name(number, count), content: content ?? [])
    }

    static func records(_ number: UInt64, _ counts: ClosedRange<UInt64>) -> [InvalidationRecord] {
        counts.map { record(number, $0) }
    }

    static func range(_ number: UInt64, _ numbers: ClosedRange<UInt64>) -> StreamRange {
        StreamRange(process: process(number), numbers: numbers)
    }

    /// Handles an event and returns its effects.
    @discardableResult
    mutating func happens(
        _ event: (inout InvalidationLog, Instant, inout [InvalidationEffect]) -> Void
    ) -> [InvalidationEffect] {
        var effects: [InvalidationEffect] = []
        event(&log, now, &effects)
        log.flush(now, &effects)
        return effects
    }

    @discardableResult
    mutating func follow(_ numbers: [UInt64], gone: [UInt64] = []) -> [InvalidationEffect] {
        let members = numbers.map { ReplicationMember(Self.id($0), Self.process($0), .live) }
        let left = gone.map { ReplicationMember(Self.id($0), Self.process($0), .left) }
        return happens {
            $0.votersChanged(numbers.map(Self.id), now: $1, effects: &$2)
            $0.membersChanged(members + left, now: $1, effects: &$2)
        }
    }

    @discardableResult
    mutating func connect(_ number: UInt64, on connection: UInt64? = nil) -> [InvalidationEffect] {
        happens {
            $0.connected(
                Self.id(number), on: ConnectionID(connection ?? number), now: $1, effects: &$2)
        }
    }

    @discardableResult
    mutating func disconnect(_ number: UInt64) -> [InvalidationEffect] {
        happens { $0.disconnected(Self.id(number), now: $1, effects: &$2) }
    }

    /// Issues an invalidation; `nil` if it is invalid.
    mutating func issue(
        _ invalidation: Invalidation
    ) -> (outcome: IssueOutcome?, effects: [InvalidationEffect]) {
        var outcome: IssueOutcome?
        let effects = happens {
            outcome = try? $0.issue(invalidation, now: $1, effects: &$2)
        }
        return (outcome, effects)
    }

    @discardableResult
    mutating func synced() -> [InvalidationEffect] {
        happens { $0.writeSynced(now: $1, effects: &$2) }
    }

    @discardableResult
    mutating func receive(
        _ records: [InvalidationRecord], from number: UInt64
    ) -> [InvalidationEffect] {
        happens { $0.recordsReceived(records, from: Self.id(number), now: $1, effects: &$2) }
    }

    @discardableResult
    mutating func confirm(
        _ positions: [StreamPosition], members: [UInt64], by number: UInt64
    ) -> [InvalidationEffect] {
        happens {
            $0.confirmationReceived(
                positions, members: members.map(Self.id), by: Self.id(number), now: $1,
                effects: &$2)
        }
    }

    @discardableResult
    mutating func hear(_ positions: [StreamPosition], from number: UInt64) -> [InvalidationEffect] {
        happens {
            $0.syncedPositionsReceived(positions, from: Self.id(number), now: $1, effects: &$2)
        }
    }

    @discardableResult
    mutating func tell(_ positions: [StreamPosition], by number: UInt64) -> [InvalidationEffect] {
        happens {
            $0.appliedPositionsReceived(positions, from: Self.id(number), now: $1, effects: &$2)
        }
    }

    @discardableResult
    mutating func answer(_ response: RepairResponse, from number: UInt64) -> [InvalidationEffect] {
        happens {
            $0.repairResponseReceived(response, from: Self.id(number), now: $1, effects: &$2)
        }
    }

    /// Advances the clock and ticks once.
    @discardableResult
    mutating func wait(_ interval: Interval) -> [InvalidationEffect] {
        now = now + interval
        return happens { $0.ticked(now: $1, effects: &$2) }
    }

    /// The metadata updates so far; issues and syncs an invalidation of this node so that they are
    /// written.
    mutating func notes() -> [LogMetadataUpdate] {
        let effects = happens {
            $0.applyLocally(Purge(.soft, [.tag([1])]), effects: &$2)
        }
        synced()
        return effects.writes.compactMap { write in
            if case .metadata(let note) = write { note } else { nil }
        }
    }

    /// The confirmations and their receivers since the last call.
    mutating func confirmations() -> [String] {
        log.takeConfirmations().map { positions, nodes in
            let had = positions.map { "\($0.process.high).\($0.count)" }
            let whom = nodes.map { "\($0.low)" }
            return had.joined(separator: ", ") + " to " + whom.joined(separator: ", ")
        }
    }

    /// The conflicts found since the last call.
    mutating func contradictions() -> [StreamPosition] {
        log.takeOutput().events.compactMap { event in
            if case .recordConflictFound(let position) = event { position } else { nil }
        }
    }

    /// The receipt of the first record that this node issued.
    var receipt: Receipt? { log.receipt(of: Self.name(100, 1)) }

    /// The status of a member in the receipt of this node's own record.
    func status(_ number: UInt64, of count: UInt64 = 1) -> Receipt.ConfirmationStatus? {
        log.receipt(of: Self.name(100, count))?.confirmations.first { $0.node == Self.id(number) }?
            .status
    }
}

extension [InvalidationEffect] {
    var writes: [LogWrite] {
        flatMap { effect -> [LogWrite] in
            guard case .write(let batch) = effect else { return [] }
            return batch
        }
    }

    /// The ids of the applied records, in order.
    var applied: [RecordID] {
        compactMap { effect in
            guard case .apply(let record, _) = effect else { return nil }
            return record.id
        }
    }

    /// The requested ranges by member.
    var asks: [UInt64: [StreamRange]] {
        reduce(into: [:]) { asks, effect in
            guard case .send(.repairRequest(let ranges), let nodes) = effect else { return }
            for node in nodes { asks[node.low, default: []] += ranges }
        }
    }
}
