import Ground

/// The schedule of dials to the addresses of seeds and of members that have not left.
///
/// An address is dialled unless the member that responds there is connected. It is kept for as long
/// as a seed or a member record names it, so that the parts of a split cluster find each other
/// again. Waits double with failures and are jittered; the number of dials in progress is limited.
struct DialSchedule: Sendable {
    /// The state of one address.
    private struct DialTarget: Sendable {
        var isSeed = false
        /// The member whose record has this address.
        var member: NodeID?
        /// True if that member is alive or suspected.
        var isMemberLive = false
        /// The node that responded here last; a seed's address may differ from the address in its
        /// record.
        var lastResponder: NodeID?
        /// True if the owner of this address is connected.
        var isConnected = false
        var isDialling = false
        /// Consecutive failures.
        var failures = 0
        /// When the last connection to this address opened.
        var openedAt = Instant.zero
        /// When the address may be dialled next.
        var dueAt: Instant

        /// The node that is expected to respond at this address, if known.
        var owner: NodeID? { lastResponder ?? member }
    }

    private var targets = SortedTable<PeerAddress, DialTarget>()
    private var dialCount = 0
    private let settings: Membership.Settings
    /// When the next address is due; `nil` if none is, or if the maximum number of dials is in
    /// progress.
    private(set) var nextDialAt: Instant?

    init(settings: Membership.Settings) {
        self.settings = settings
    }

    /// The number of addresses that are kept.
    var count: Int { targets.count }

    // MARK: Known addresses

    /// Replaces the seeds by the lowest ``Membership/Settings/seedsMax`` of `addresses`.
    mutating func seedsResolved(_ addresses: [PeerAddress], _ turn: inout StepContext) {
        let seeds = Set(addresses.sorted().prefix(settings.seedsMax))
        targets.updateAll { address, contact in contact.isSeed = seeds.contains(address) }
        for address in seeds.sorted() where targets[address] == nil {
            let dueAt = turn.now + turn.jitter(upTo: .milliseconds(100))
            targets[address] = DialTarget(isSeed: true, dueAt: dueAt)
        }
        removeUnreferenced()
        updateNextDial()
    }

    /// Records the address of a live or dead member and schedules a dial, unless it `isConnected`.
    ///
    /// - Parameters:
    ///   - record: The record of the member.
    ///   - dialsFirst: True if this node dials before the member does.
    ///   - isConnected: True if there is a connection with the member.
    ///   - turn: The event being handled.
    mutating func addMember(
        _ record: MemberRecord, dialsFirst: Bool, isConnected: Bool, _ turn: inout StepContext
    ) {
        let half = Interval.milliseconds(500)
        let dueAt = turn.now + (dialsFirst ? .zero : half) + turn.jitter(upTo: half)
        let member = record.member
        addMember(member.address, member.id, isLive: record.state.isLive, dueAt: dueAt)
        if isConnected { connected(member.id) }
    }

    private mutating func addMember(
        _ address: PeerAddress, _ id: NodeID, isLive: Bool, dueAt: Instant
    ) {
        for other in targets.keys where other != address && targets[other]?.member == id {
            targets[other]?.member = nil
        }
        var contact = targets[address] ?? DialTarget(dueAt: dueAt)
        if contact.member != nil, contact.member != id, contact.isMemberLive, !isLive { return }
        let isRevived = isLive && !(contact.member == id && contact.isMemberLive)
        if isRevived, contact.lastResponder != id {
            contact.lastResponder = nil
            contact.isConnected = false
        }
        contact.member = id
        contact.isMemberLive = isLive
        if isRevived, !contact.isConnected {
            contact.failures = 0
            contact.dueAt = dueAt
        }
        targets[address] = contact
        removeUnreferenced()
        updateNextDial()
    }

    /// Removes the address of a member that has left or was forgotten.
    mutating func removeMember(_ id: NodeID) {
        targets.updateAll { _, contact in
            if contact.member == id { contact.member = nil }
        }
        removeUnreferenced()
        updateNextDial()
    }

    // MARK: Outcomes

    /// Records that a dial failed and schedules the next one.
    mutating func dialFailed(_ address: PeerAddress, _ turn: inout StepContext) {
        guard var contact = targets[address] else { return dialEnded(address) }
        contact.lastResponder = nil
        contact.isConnected = false
        contact.failures += 1
        contact.dueAt = turn.now + delay(after: contact, &turn)
        targets[address] = contact
        dialEnded(address)
    }

    /// Records that a dial has become a connection with `id`.
    mutating func dialSucceeded(_ address: PeerAddress, _ id: NodeID, at now: Instant) {
        targets[address]?.lastResponder = id
        targets[address]?.openedAt = now
        targets[address]?.dueAt = now + settings.dialDelayMin
        dialEnded(address)
    }

    /// Records that the address is this node's own, which postpones its next dial.
    mutating func dialedSelf(_ address: PeerAddress, at now: Instant) {
        targets[address]?.dueAt = now + settings.selfDialDelay
        dialEnded(address)
    }

    /// Records that the node at this address refuses this node for now.
    mutating func dialRefused(_ address: PeerAddress, at now: Instant) {
        targets[address]?.dueAt = now + settings.deadDialDelayMax
        updateNextDial()
    }

    /// Records that there is a connection with `id`, in whichever direction it was dialled.
    mutating func connected(_ id: NodeID) {
        targets.updateAll { _, contact in
            if contact.owner == id { contact.isConnected = true }
        }
        updateNextDial()
    }

    /// Records that the last connection with `id` has closed.
    ///
    /// The member is dialled at once after a small jitter. A connection shorter than
    /// ``Membership/Settings/dialDelayMax`` counts as a failure and the usual delay applies.
    mutating func disconnected(_ id: NodeID, _ turn: inout StepContext) {
        for address in targets.keys {
            guard var contact = targets[address], contact.owner == id, contact.isConnected else {
                continue
            }
            contact.isConnected = false
            if turn.now - contact.openedAt < settings.dialDelayMax {
                contact.failures += 1
                contact.dueAt = max(contact.dueAt, turn.now + delay(after: contact, &turn))
            } else {
                contact.failures = 0
                contact.dueAt = turn.now + turn.jitter(upTo: .milliseconds(200))
            }
            targets[address] = contact
        }
        updateNextDial()
    }

    /// Schedules a second connection with `id` beside the present one.
    mutating func scheduleRedial(_ id: NodeID, at now: Instant) {
        let held = targets.keys.filter { address in
            targets[address]?.isConnected == true && targets[address]?.owner == id
        }
        guard let address = held.first(where: { targets[$0]?.member == id }) ?? held.first else {
            return
        }
        targets[address]?.isConnected = false
        targets[address]?.failures = 0
        targets[address]?.dueAt = now
        updateNextDial()
    }

    /// Returns the addresses to dial now and marks them as being dialled.
    mutating func takeDue(_ turn: inout StepContext) -> [PeerAddress] {
        var due: [PeerAddress] = []
        let waiting = targets.keys.indices.filter { index in
            let contact = targets.values[index]
            return !contact.isDialling && !contact.isConnected && contact.dueAt <= turn.now
        }.sorted { targets.values[$0].dueAt < targets.values[$1].dueAt }
        for index in waiting.prefix(settings.dialsMax - dialCount) {
            let address = targets.keys[index]
            targets[address]?.isDialling = true
            due.append(address)
        }
        dialCount += due.count
        updateNextDial()
        return due
    }

    // MARK: Helpers

    private mutating func dialEnded(_ address: PeerAddress) {
        if targets[address]?.isDialling == true {
            targets[address]?.isDialling = false
            dialCount -= 1
        }
        removeUnreferenced()
        updateNextDial()
    }

    /// Drops addresses that are no longer named, except while a dial is in progress.
    private mutating func removeUnreferenced() {
        for (address, contact) in zip(targets.keys, targets.values)
        where !contact.isSeed && contact.member == nil && !contact.isDialling {
            targets[address] = nil
        }
    }

    /// Returns the delay after failures: random between half and all of a limit that doubles with
    /// each failure, up to a maximum.
    private func delay(after contact: DialTarget, _ turn: inout StepContext) -> Interval {
        let isWanted = contact.isSeed || contact.isMemberLive
        let most = isWanted ? settings.dialDelayMax : settings.deadDialDelayMax
        let doublings = min(contact.failures - 1, 10)
        let doubled = settings.dialDelayMin.nanoseconds << Int64(max(0, doublings))
        let half = Interval(nanoseconds: min(most.nanoseconds, doubled) / 2)
        return half + turn.jitter(upTo: half)
    }

    private mutating func updateNextDial() {
        guard dialCount < settings.dialsMax else {
            nextDialAt = nil
            return
        }
        var next: Instant?
        for contact in targets.values where !contact.isDialling && !contact.isConnected {
            next = next.map { min($0, contact.dueAt) } ?? contact.dueAt
        }
        nextDialAt = next
    }
}
