import Ground

/// What is believed of the other members, the gone ones included; bounded.
struct MemberList: Sendable {
    struct Entry: Sendable {
        var record: MemberRecord
        var changedAt: Instant
        /// There has been a connection with this process.
        var wasConnected = false
    }

    private var entries = SortedTable<NodeID, Entry>()
    /// Alive or suspected.
    private(set) var liveCount = 0
    /// Others that are kept at most.
    let countMax: Int

    init(countMax: Int) {
        self.countMax = countMax
    }

    var ids: [NodeID] { entries.keys }
    var records: [MemberRecord] { entries.values.map(\.record) }
    var count: Int { entries.count }

    subscript(id: NodeID) -> MemberRecord? { entries[id]?.record }

    func isLive(_ id: NodeID) -> Bool {
        entries[id]?.record.state.isLive ?? false
    }

    func wasConnected(_ id: NodeID) -> Bool {
        entries[id]?.wasConnected ?? false
    }

    mutating func markConnected(_ id: NodeID) {
        entries[id]?.wasConnected = true
    }

    /// Keeps `record` instead of what is believed of its node; there must be room for a new one.
    mutating func update(_ record: MemberRecord, at now: Instant) {
        let before = entries[record.member.id]
        precondition(before != nil || entries.count < countMax, "a roster over its limit")
        liveCount += (record.state.isLive ? 1 : 0) - (before?.record.state.isLive == true ? 1 : 0)
        let isSameProcess = before?.record.member.process == record.member.process
        entries[record.member.id] = Entry(
            record: record, changedAt: now,
            wasConnected: isSameProcess && before?.wasConnected == true)
    }

    /// True if one more can be kept, if need be instead of the one that is gone longest, which is
    /// then handed back.
    mutating func evictIfFull() -> (isThere: Bool, forgotten: MemberRecord?) {
        guard entries.count >= countMax else { return (true, nil) }
        let gone = entries.values.filter { !$0.record.state.isLive }
        guard let oldest = gone.min(by: { $0.changedAt < $1.changedAt }) else {
            return (false, nil)
        }
        entries[oldest.record.member.id] = nil
        return (true, oldest.record)
    }
}

extension MemberRecord.State {
    /// It takes part: alive or suspected.
    package var isLive: Bool { self < .dead }
}

extension Incarnation {
    /// The next one; of the next epoch when the count is spent.
    var raised: Incarnation {
        guard count == .max else { return Incarnation(epoch: epoch, count: count + 1) }
        return Incarnation(epoch: epoch == .max ? epoch : epoch + 1, count: 0)
    }
}
