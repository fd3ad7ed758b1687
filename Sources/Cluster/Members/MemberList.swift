import Ground

/// The records of the other members, including dead and left ones; bounded.
struct MemberList: Sendable {
    /// The record of one member.
    struct Entry: Sendable {
        var record: MemberRecord
        var changedAt: Instant
        /// True if there has been a connection with this process.
        var wasConnected = false
    }

    private var entries = SortedTable<NodeID, Entry>()
    /// The number of alive and suspected members.
    private(set) var liveCount = 0
    /// Maximum number of records.
    let countMax: Int

    init(countMax: Int) {
        self.countMax = countMax
    }

    var ids: [NodeID] { entries.keys }
    var records: [MemberRecord] { entries.values.map(\.record) }
    var count: Int { entries.count }

    subscript(id: NodeID) -> MemberRecord? { entries[id]?.record }

    /// Returns true if the member is alive or suspected.
    func isLive(_ id: NodeID) -> Bool {
        entries[id]?.record.state.isLive ?? false
    }

    /// Returns true if there has been a connection with the member's present process.
    func wasConnected(_ id: NodeID) -> Bool {
        entries[id]?.wasConnected ?? false
    }

    /// Records that there is a connection with the member's present process.
    mutating func markConnected(_ id: NodeID) {
        entries[id]?.wasConnected = true
    }

    /// Replaces the record of a member.
    ///
    /// - Precondition: There is a free slot if the member is new.
    mutating func update(_ record: MemberRecord, at now: Instant) {
        let before = entries[record.member.id]
        precondition(before != nil || entries.count < countMax, "a roster over its limit")
        liveCount += (record.state.isLive ? 1 : 0) - (before?.record.state.isLive == true ? 1 : 0)
        let isSameProcess = before?.record.member.process == record.member.process
        entries[record.member.id] = Entry(
            record: record, changedAt: now,
            wasConnected: isSameProcess && before?.wasConnected == true)
    }

    /// Makes a slot for one more record, if need be by removing the member that has been dead or
    /// left longest.
    ///
    /// - Returns: Whether there is a free slot, and the removed record.
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
    /// True for members that take part: alive and suspected ones.
    package var isLive: Bool { self < .dead }
}

extension Incarnation {
    /// The next incarnation; the count overflows into the next epoch.
    var raised: Incarnation {
        guard count == .max else { return Incarnation(epoch: epoch, count: count + 1) }
        return Incarnation(epoch: epoch == .max ? epoch : epoch + 1, count: 0)
    }
}
