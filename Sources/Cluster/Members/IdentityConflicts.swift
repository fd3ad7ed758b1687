import Ground

/// Conflicts between two processes with one node id, another member's or this node's own.
///
/// A node's newer process replaces the earlier one when that no longer responds. While it responds,
/// every member that is connected with both refuses the newcomer. A node restored from an older
/// copy of its directory learns from the first tables that it was started more often than its
/// directory records: it has made promises that it cannot keep, and may not act as that member.
struct IdentityConflicts: Sendable {
    /// A process that claims, or is reported, to be a known node.
    struct Claimant: Hashable, Sendable {
        /// The claimant's connection; `nil` if it is known from a record alone.
        var connection: ConnectionID?
        var dialled: PeerAddress?
        var record: MemberRecord
    }

    /// A probe of an earlier process that a claimant would replace.
    struct Check: Hashable, Sendable {
        /// The process that replaces the earlier one if that does not respond.
        var claimant: Claimant
        /// The process that is probed.
        let earlier: Member
        /// The sequence number of the probing ping.
        let sequence: UInt32
        var endsAt: Instant
    }

    /// A connection with another process that has this node's own id.
    private struct Duplicate: Sendable {
        let process: ProcessID
        /// True if this process was a member before it met the duplicate, or had run for more than
        /// ``MembershipSettings/seniorityAge``.
        let isSenior: Bool
        var endsAt: Instant
    }

    /// The reaction to a record of another process of this node.
    enum Answer: Hashable, Sendable {
        case ignore
        /// Raise this process's incarnation above the record's.
        case refute
        case refuseToServe(MembershipEffect.ServingRefusal)
    }

    /// Maximum number of times that an older process raises its incarnation above a live
    /// duplicate's before it may give way.
    private static let contestsMax = 8
    /// The maximum for a young process, since the record may be stale.
    private static let youngContestsMax = 2

    /// This process.
    private let own: ProcessID
    /// When this process started; a young process gives way to an older one with its id.
    private let startedAt: Instant
    private let settings: MembershipSettings
    /// Checks in progress, by the claimed node id.
    private var checks = SortedTable<NodeID, Check>()
    /// Duplicates of this node, by connection.
    private var duplicates = SortedTable<ConnectionID, Duplicate>()
    /// Connections on which a process was sent a later record of its own node, with the time at
    /// which each is closed at the latest.
    ///
    /// Closing at once could lose that record, if the other side had sent something meanwhile.
    /// Nothing else is sent on them.
    private var outdatedConnections = SortedTable<ConnectionID, Instant>()
    /// How often this node has raised its incarnation above that of a live duplicate.
    private var contestCount = 0

    init(own: ProcessID, settings: MembershipSettings, startedAt: Instant) {
        self.own = own
        self.settings = settings
        self.startedAt = startedAt
    }

    /// True while another process with this node's id is connected.
    var hasDuplicate: Bool { !duplicates.isEmpty }

    /// When the first check, duplicate's or outdated connection ends; `nil` if there is none.
    var nextDue: Instant? {
        (checks.values.map(\.endsAt) + duplicates.values.map(\.endsAt) + outdatedConnections.values)
            .min()
    }

    // MARK: Processes of another node

    /// Adds a claimant to the check of its node; returns false if there is none in progress.
    ///
    /// Only one claimant stays. A connected newcomer replaces the present one, whose connection is
    /// closed; a reported one replaces only another reported one that its record supersedes.
    mutating func addClaimant(_ newcomer: Claimant, _ turn: inout StepContext) -> Bool {
        let id = newcomer.record.member.id
        guard let present = checks[id]?.claimant else { return false }
        // A connected claimant is better evidence than one in a repeated record.
        guard
            newcomer.connection != nil
                || present.connection == nil && newcomer.record.supersedes(present.record)
        else { return true }
        if let earlier = present.connection { turn.effects.append(.close(earlier, .redundant)) }
        checks[id]?.claimant = newcomer
        return true
    }

    /// Starts a check: the earlier process is pinged with `sequence`.
    mutating func start(_ check: Check) { checks[check.claimant.record.member.id] = check }

    /// Ends the check whose earlier process has responded, and returns the refused claimant; `nil`
    /// if no check has this `sequence`.
    mutating func takeRefuted(_ sequence: UInt32) -> Claimant? {
        guard let check = checks.values.first(where: { $0.sequence == sequence }) else {
            return nil
        }
        checks[check.claimant.record.member.id] = nil
        return check.claimant
    }

    /// Lets the check of a node end now without a response, as the earlier process's connection is
    /// lost.
    mutating func disconnected(_ id: NodeID, at now: Instant) { checks[id]?.endsAt = now }

    /// Ends and returns the checks whose earlier process did not respond in time.
    mutating func takeUnanswered(at now: Instant) -> [Check] {
        let due = checks.values.filter { $0.endsAt <= now }
        for check in due { checks[check.claimant.record.member.id] = nil }
        return due
    }

    /// Keeps the connection of a process that was sent a later record of its own node, for
    /// ``MembershipSettings/probeTimeout``.
    mutating func addOutdated(_ id: ConnectionID, at now: Instant) {
        outdatedConnections[id] = now + settings.probeTimeout
    }

    /// Returns true for a connection that ``addOutdated(_:at:)`` keeps.
    func isOutdated(_ id: ConnectionID) -> Bool { outdatedConnections[id] != nil }

    // MARK: Processes of this node

    /// Handles a connection with a process of this node's own id.
    ///
    /// A connection of this process with itself is closed. A senior process with the lower process
    /// id claims the node id at once, by closing with ``CloseReason/duplicateIdentity``; any other
    /// keeps the connection for a while and awaits the other side's claim.
    ///
    /// - Parameters:
    ///   - id: The connection.
    ///   - process: The process at its other end.
    ///   - isMember: True if this process has the table of a member, which makes it senior at any
    ///     age.
    ///   - turn: The event being handled.
    mutating func duplicateConnected(
        _ id: ConnectionID, _ process: ProcessID, isMember: Bool, _ turn: inout StepContext
    ) {
        guard process != own else { return turn.effects.append(.close(id, .selfDial)) }
        let isSenior = isMember || turn.now - startedAt > settings.seniorityAge
        guard !isSenior || isLater(than: process) else {
            return turn.effects.append(.close(id, .duplicateIdentity))
        }
        // Of two seniors the other sends its claim first, of two newcomers neither does; a
        // senior sends its claim before a newcomer's time is over.
        let timeout = settings.duplicateTimeout
        let endsAt = turn.now + (isSenior ? timeout : timeout + timeout)
        duplicates[id] = Duplicate(process: process, isSenior: isSenior, endsAt: endsAt)
    }

    /// Closes the connections whose time is over; those of duplicates with a claim of the node id,
    /// unless this process gives way.
    ///
    /// - Returns: True if this process must give way, as no claim came in time: it was a newcomer
    ///   when it met the duplicate, and has the higher process id.
    mutating func closeOverdue(_ turn: inout StepContext) -> Bool {
        var givesWay = false
        for (id, duplicate) in zip(duplicates.keys, duplicates.values)
        where duplicate.endsAt <= turn.now {
            duplicates[id] = nil
            let isRefused = !duplicate.isSenior && isLater(than: duplicate.process)
            givesWay = givesWay || isRefused
            turn.effects.append(.close(id, isRefused ? .redundant : .duplicateIdentity))
        }
        for (id, endsAt) in zip(outdatedConnections.keys, outdatedConnections.values)
        where endsAt <= turn.now {
            outdatedConnections[id] = nil
            turn.effects.append(.close(id, .redundant))
        }
        return givesWay
    }

    /// Returns the reaction to `record`, of another process of this node; `own` is this process's
    /// record.
    ///
    /// If that process started in this boot epoch or later and this one `isJoining`, this node's
    /// directory is older than what the node has promised to keep: it refuses to serve. A live
    /// record that supersedes `own` is refuted a limited number of times before this process may
    /// give way.
    mutating func answer(
        to record: MemberRecord, own: MemberRecord, isJoining: Bool, at now: Instant
    ) -> Answer {
        if isJoining, record.incarnation.epoch >= own.incarnation.epoch {
            return .refuseToServe(.restoredCopy)
        }
        guard record.supersedes(own) else { return .ignore }
        guard record.state.isLive else { return .refute }
        contestCount += 1
        let isYoung = now - startedAt < settings.seniorityAge
        let givesWay =
            isYoung && contestCount > Self.youngContestsMax
            || contestCount > Self.contestsMax && isLater(than: record.member.process)
        return givesWay ? .refuseToServe(.duplicateIdentity) : .refute
    }

    /// Returns true if this process counts as the later one: it has the higher process id.
    ///
    /// The true order is unknown; this one is the same on both sides.
    private func isLater(than process: ProcessID) -> Bool { own > process }

    // MARK: Connections and time

    /// Returns true for the connection of a claimant or a duplicate, which is not in the mesh.
    func isPending(_ id: ConnectionID) -> Bool {
        duplicates[id] != nil || checks.values.contains { $0.claimant.connection == id }
    }

    /// Removes a closed connection, with the check of its claimant; returns true if it was a
    /// claimant's or a duplicate's.
    mutating func connectionClosed(_ id: ConnectionID) -> Bool {
        outdatedConnections[id] = nil
        guard isPending(id) else { return false }
        duplicates[id] = nil
        for (node, check) in zip(checks.keys, checks.values)
        where check.claimant.connection == id {
            checks[node] = nil
        }
        return true
    }

    /// Restarts the time-outs after this process stood still until `now`.
    mutating func processStalled(at now: Instant) {
        checks.updateAll { _, check in
            check.endsAt = max(check.endsAt, now + settings.probeTimeout)
        }
        duplicates.updateAll { _, duplicate in
            duplicate.endsAt = max(duplicate.endsAt, now + settings.duplicateTimeout)
        }
    }
}
