import Cluster
import Ground

/// A node of the world: a disk that outlives it, and the run that is lost with it.
struct FenceWorldNode {
    let id: NodeID
    let settings: Fence.Settings
    /// Synced, each stream without a gap.
    private(set) var disk: [ProcessID: [WorldRecord]] = [:]
    /// Applied: the disk and what is not synced yet.
    private(set) var log: [ProcessID: [WorldRecord]] = [:]
    private(set) var purges: Set<Int> = []
    private(set) var process = ProcessID(high: 0, low: 0)
    var keeper: FenceKeeper?
    var pausedUntil = Instant.zero
    var isSyncDue = false
    /// Indices of those that are up, as this node was told.
    var reached: [Int] = []
    /// What a fence that a timer keeps would say.
    var flag = false
    var fencedSince: Instant?

    init(id: NodeID, settings: Fence.Settings) {
        self.id = id
        self.settings = settings
    }

    var isUp: Bool { keeper != nil }

    mutating func start(_ now: Instant, using dice: inout Dice) -> [FenceNews] {
        process = ProcessID(using: &dice)
        log = disk
        purges = []
        isSyncDue = false
        flag = false
        reached = []
        var count: [CountRecord] = []
        for record in missing([]) {
            switch record.content {
            case .purge(let purge): purges.insert(purge)
            case .count(let record): count.append(record)
            }
        }
        keeper = FenceKeeper(
            own: id, memory: nil, replaying: count, mayOpen: disk.isEmpty, settings: settings,
            firstRound: dice.next(), now: now)
        return tell([.applied(positions(log)), .synced(positions(disk))], now, using: &dice)
    }

    mutating func crash() { keeper = nil }

    mutating func tell(
        _ events: [FenceEvent], _ now: Instant, using dice: inout Dice
    ) -> [FenceNews] {
        events.compactMap { event in
            keeper?.handle(event, now: now, using: &dice)
            return keeper?.takeNews()
        }
    }

    func positions(_ streams: [ProcessID: [WorldRecord]]) -> [StreamPosition] {
        KnownPositions(
            streams.map { StreamPosition(process: $0.key, count: UInt64($0.value.count)) }
        ).positions
    }

    var appliedPositions: [StreamPosition] { positions(log) }

    /// What this node has on its disk and somebody at `positions` lacks.
    func missing(_ positions: [StreamPosition]) -> [WorldRecord] {
        let known = KnownPositions(positions)
        return self.positions(disk).flatMap { held in
            disk[held.process, default: []].dropFirst(Int(known.count(of: held.process)))
        }
    }

    /// Takes what continues a stream.
    mutating func apply(_ records: [WorldRecord]) -> [FenceEvent] {
        var events: [FenceEvent] = []
        for record in records where log[record.process, default: []].count + 1 == record.number {
            log[record.process, default: []].append(record)
            switch record.content {
            case .purge(let purge): purges.insert(purge)
            case .count(let count) where record.process != process:
                events.append(.recorded(count))
            case .count: break
            }
        }
        return records.isEmpty ? [] : [.applied(appliedPositions)] + events
    }

    mutating func write(_ content: WorldRecord.Content) -> [FenceEvent] {
        let number = UInt64(log[process, default: []].count + 1)
        return apply([WorldRecord(process: process, number: number, content: content)])
    }

    /// Everything that was applied is synced; what is new on the disk is handed back.
    mutating func sync() -> (events: [FenceEvent], new: [WorldRecord]) {
        let new = positions(log).flatMap { held in
            log[held.process, default: []].dropFirst(disk[held.process, default: []].count)
        }
        disk = log
        isSyncDue = false
        var events: [FenceEvent] = [.synced(positions(disk))]
        for record in new where record.process == process {
            if case .count(let count) = record.content { events.append(.recorded(count)) }
        }
        return (events, new)
    }
}
