import Ground

/// The source of a member record.
enum RecordSource: Hashable, Sendable {
    /// This node's own observation: a hello, an unanswered probe, an expired suspicion.
    case local
    /// A push by the member with this id, which made the observation itself.
    case direct(NodeID)
    /// A repetition by any member.
    case gossip
    /// The first table after this node joined: others know it, so it is not repeated.
    case historical
}

/// The other members as this node believes them to be, including dead and left ones; bounded.
///
/// Decides which of two records is believed, and when a suspected member is dead.
struct MemberList: Sendable {
    /// A change of a record; `before` is `nil` for a new member.
    struct Change: Hashable, Sendable {
        let record: MemberRecord
        let before: MemberRecord?
    }

    private struct Entry: Sendable {
        var record: MemberRecord
        var changedAt: Instant
        /// True if there has been a connection with this process.
        var wasConnected = false
        /// The suspicion of a suspected member; `nil` in any other state.
        var suspicion: Suspicion?
    }

    private let own: NodeID
    private let settings: MembershipSettings
    private var entries = SortedTable<NodeID, Entry>()
    /// The number of alive and suspected members.
    private(set) var liveCount = 0

    init(own: NodeID, settings: MembershipSettings) {
        self.own = own
        self.settings = settings
    }

    var ids: [NodeID] { entries.keys }
    var records: [MemberRecord] { entries.values.map(\.record) }

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

    // MARK: Records

    /// Makes a slot for the record of a new member, if need be by removing the member that has been
    /// dead or left longest, though not for another such member.
    ///
    /// - Returns: Whether there is a free slot, and the removed record.
    mutating func makeRoom(for record: MemberRecord) -> (isThere: Bool, forgotten: MemberRecord?) {
        guard entries.count >= settings.membersMax - 1 else { return (true, nil) }
        let gone = entries.values.filter { !$0.record.state.isLive }
        guard record.state.isLive, let oldest = gone.min(by: { $0.changedAt < $1.changedAt }) else {
            return (false, nil)
        }
        entries[oldest.record.member.id] = nil
        return (true, oldest.record)
    }

    /// Adopts `record` if it supersedes the present one, and returns the changes in order.
    ///
    /// A live member that others report dead is suspected first, and is dead once the shortest time
    /// to refute is over. A push that repeats a suspicion confirms it.
    ///
    /// - Precondition: There is a free slot if the member is new.
    mutating func merge(
        _ record: MemberRecord, _ source: RecordSource, at now: Instant
    ) -> [Change] {
        let id = record.member.id
        guard let held = self[id] else { return [adopt(record, source, at: now)] }
        guard record.supersedes(held) else {
            if record == held, case .direct(let peer) = source {
                entries[id]?.suspicion?.confirm(by: peer)
            }
            return []
        }
        guard record.state == .dead, held.state.isLive, source != .local else {
            return [adopt(record, source, at: now)]
        }
        let suspected = MemberRecord(record.member, record.incarnation, .suspected)
        let change = suspected.supersedes(held) ? adopt(suspected, source, at: now) : nil
        entries[id]?.suspicion?.markExpiredElsewhere()
        return [change, expireSuspicion(of: id, source, at: now)].compactMap { $0 }
    }

    /// Replaces the present record, and restarts or ends the suspicion by the new state.
    private mutating func adopt(
        _ record: MemberRecord, _ source: RecordSource, at now: Instant
    ) -> Change {
        let before = entries[record.member.id]
        precondition(
            before != nil || entries.count < settings.membersMax - 1, "over the limit")
        liveCount += (record.state.isLive ? 1 : 0) - (before?.record.state.isLive == true ? 1 : 0)
        let isSameProcess = before?.record.member.process == record.member.process
        entries[record.member.id] = Entry(
            record: record, changedAt: now,
            wasConnected: isSameProcess && before?.wasConnected == true,
            suspicion: record.state == .suspected ? suspicion(from: source, at: now) : nil)
        return Change(record: record, before: before?.record)
    }

    // MARK: Suspicions

    /// Returns a new suspicion, whose first accuser is the `source` unless that only repeats.
    private func suspicion(from source: RecordSource, at now: Instant) -> Suspicion {
        var suspicion = Suspicion(at: now, members: liveCount + 1, settings: settings)
        switch source {
        case .local: suspicion.confirm(by: own)
        case .direct(let peer): suspicion.confirm(by: peer)
        case .gossip, .historical: break
        }
        return suspicion
    }

    /// When the first suspicion expires; `nil` if no member is suspected.
    var nextDue: Instant? { entries.values.compactMap { $0.suspicion?.deadline }.min() }

    /// Confirms the suspicion of a member by this node's own observation.
    ///
    /// - Returns: False if the shortest time applies already, or the member is not suspected.
    mutating func confirmSuspicion(of id: NodeID) -> Bool {
        guard entries[id]?.suspicion?.isConfirmed == false else { return false }
        entries[id]?.suspicion?.confirm(by: own)
        return true
    }

    /// Returns true for a suspected member that has as many accusers besides this node as shorten
    /// the time.
    func isConfirmedByOthers(_ id: NodeID) -> Bool {
        entries[id]?.suspicion?.isConfirmed(excluding: own) == true
    }

    /// Marks the first suspected member whose time is over as dead; returns `nil` if there is none.
    mutating func expireNextSuspicion(at now: Instant) -> Change? {
        for id in ids { if let change = expireSuspicion(of: id, .local, at: now) { return change } }
        return nil
    }

    /// Marks a suspected member as dead if its time is over; otherwise returns `nil`.
    private mutating func expireSuspicion(
        of id: NodeID, _ source: RecordSource, at now: Instant
    ) -> Change? {
        guard let entry = entries[id], let suspicion = entry.suspicion, suspicion.deadline <= now
        else { return nil }
        let dead = MemberRecord(entry.record.member, entry.record.incarnation, .dead)
        return adopt(dead, source, at: now)
    }

    /// Extends the time of all suspicions by `lateness`, for which this process stood still.
    mutating func processStalled(for lateness: Interval, at now: Instant) {
        entries.updateAll { _, entry in
            entry.suspicion?.processStalled(for: lateness, at: now)
        }
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
