import Ground

/// The members that receipts name, and the records that each has confirmed.
struct ReceiptTracker: Sendable {
    /// This process, to whose own records most receipts belong.
    private let process: ProcessID
    private let settings: InvalidationLog.Settings
    var members: MemberTracker
    private var confirmations: Confirmations
    /// The numbers of this node's own consensus records, ascending; they have no receipts.
    private var ownConsensusNumbers: [UInt64] = []
    /// The number up to which no receipt of this node's own records is pending.
    private var settledNumber: UInt64 = 0

    init(own: NodeID, process: ProcessID, settings: InvalidationLog.Settings) {
        self.process = process
        self.settings = settings
        members = MemberTracker(own: own, process: process, settings: settings)
        confirmations = Confirmations(own: process)
    }

    // MARK: Events

    /// Records that this node has issued a consensus record.
    mutating func consensusRecordIssued(_ number: UInt64) { ownConsensusNumbers.append(number) }

    /// Records the positions that are synced here.
    mutating func synced(_ positions: [StreamPosition], at now: Instant) {
        _ = confirmations.record(positions, members: [], by: members.own, at: now)
    }

    /// Records what `node` has synced and which members it names, unless it has left.
    ///
    /// - Returns: True if the known members may be others than before.
    mutating func confirmed(
        _ positions: [StreamPosition], naming named: [NodeID], by node: NodeID, at now: Instant
    ) -> Bool {
        guard !members.hasLeft(node) else { return false }
        let bounded = Array(named.prefix(settings.streamsMax))
        let namesFewer = confirmations.record(positions, members: bounded, by: node, at: now)
        return namesFewer || bounded.contains { !members.isKnown($0) && !members.hasLeft($0) }
    }

    /// Updates the known members by what the members name.
    mutating func reviewNamed(connected: [NodeID], now: Instant) {
        members.review(
            named: confirmations.membersNamed(by: members.ownMembers), connected: connected,
            now: now)
    }

    /// Drops the members whose time has passed, and the confirmations of nodes that no member
    /// names.
    ///
    /// What was durable at a majority that included them stays so.
    ///
    /// - Returns: The members that have left, and the nodes whose confirmations were dropped.
    mutating func review(connected: [NodeID], now: Instant) -> [NodeID] {
        members.review(now: now)
        reviewNamed(connected: connected, now: now)
        let gone = confirmations.confirmers.filter {
            $0 != members.own && !connected.contains($0) && !members.isKnown($0)
                && !members.hasBeenVoter($0)
        }
        for node in gone { confirmations.remove(node) }
        return members.leftMembers.filter(members.hasLeft) + gone
    }

    /// Forgets a stream that is retired.
    mutating func forget(_ process: ProcessID) { confirmations.forget(process) }

    /// Advances the number up to which no receipt of this node's own records is pending.
    ///
    /// - Parameters:
    ///   - synced: The number up to which they are synced here.
    ///   - isConnected: Returns true for a connected member; receipts do not wait for others.
    /// - Returns: The number; `nil` if it is unchanged.
    mutating func settle(synced: UInt64, isConnected: (NodeID) -> Bool) -> UInt64? {
        var count = synced
        guard count > settledNumber else { return nil }
        for node in members.known where node != members.own && isConnected(node) {
            count = min(count, confirmations.count(of: process, by: node))
        }
        guard count > settledNumber else { return nil }
        settledNumber = count
        return count
    }

    // MARK: Queries

    /// The number of positions that nodes have confirmed.
    var confirmedCount: Int { confirmations.count }

    /// Returns the progress of a record that is held since `heldSince`.
    func receipt(of record: InvalidationRecord, heldSince: Instant) -> Receipt {
        let statuses = members.known.map { node in
            Receipt.MemberConfirmation(node, status(of: node, record.id, since: heldSince))
        }
        let majorityAt = members.majorityInstant { confirmations.instant(of: record.id, by: $0) }
        return Receipt(
            record: record, heldSince: heldSince, confirmations: statuses, majorityAt: majorityAt,
            boundedAt: majorityAt.map { $0 + settings.fenceDuration })
    }

    /// Returns the status of `node` for a record that is held here since `since`.
    private func status(
        of node: NodeID, _ name: RecordID, since: Instant
    ) -> Receipt.ConfirmationStatus {
        if let instant = confirmations.instant(of: name, by: node) {
            return .confirmed(elapsed: max(.zero, instant - since))
        }
        return members.unreachableSince[node].map { .unreachable(since: $0) } ?? .pending
    }

    /// Returns the number of this node's purges that some voter has not confirmed, reachable or
    /// not; `synced` is the number up to which its records are synced here.
    func pendingCount(synced: UInt64) -> UInt64 {
        let others = members.voters.lazy.filter { $0 != members.own }
        let confirmed = others.map { confirmations.count(of: process, by: $0) }.min() ?? synced
        guard confirmed < synced else { return 0 }
        let consensusCount = ownConsensusNumbers.count { $0 > confirmed && $0 <= synced }
        return synced - confirmed - UInt64(consensusCount)
    }

    /// Returns true if all voters have confirmed the position; false without voters.
    func isConfirmedByVoters(_ position: StreamPosition) -> Bool {
        !members.voters.isEmpty
            && members.voters.allSatisfy {
                confirmations.count(of: position.process, by: $0) >= position.count
            }
    }

    /// Returns how many invalidations up to `positions` another node has not confirmed; the
    /// greatest number if there are more, which positions of a member that lies can add up to.
    func lag(of node: NodeID, behind positions: [StreamPosition]) -> UInt64 {
        positions.reduce(0) { sum, position in
            let confirmed = confirmations.count(of: position.process, by: node)
            let missing = position.count > confirmed ? position.count - confirmed : 0
            let (total, overflow) = sum.addingReportingOverflow(missing)
            return overflow ? .max : total
        }
    }
}
