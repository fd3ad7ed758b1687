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
    private let settings: MembershipSettings
    /// When the next address is due; `nil` if none is, or if the maximum number of dials is in
    /// progress.
    private(set) var nextDialAt: Instant?

    init(settings: MembershipSettings) {
        self.settings = settings
    }

    // MARK: Known addresses

    /// Replaces the seeds by the lowest ``MembershipSettings/seedsMax`` of `addresses`.
    mutating func seedsResolved(_ addresses: [PeerAddress], _ turn: inout StepContext) {
        let seeds = Set(addresses.sorted().prefix(settings.seedsMax))
        targets.updateAll { address, target in target.isSeed = seeds.contains(address) }
        for address in seeds.sorted() where targets[address] == nil {
            let dueAt = turn.now + turn.jitter(upTo: .milliseconds(100))
            targets[address] = DialTarget(isSeed: true, dueAt: dueAt)
        }
        removeUnreferenced()
        updateNextDial()
    }

    /// Records the address of a live or dead member and schedules a dial, unless it `isConnected`.
    ///
    /// A dead member does not take the address of a live one.
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

    /// Moves member `id` to `address`; ignored for a dead member where a live one is.
    ///
    /// If the member is newly live and not connected, its failures are forgotten and the dial is
    /// due at `dueAt`.
    private mutating func addMember(
        _ address: PeerAddress, _ id: NodeID, isLive: Bool, dueAt: Instant
    ) {
        for other in targets.keys where other != address && targets[other]?.member == id {
            targets[other]?.member = nil
        }
        var target = targets[address] ?? DialTarget(dueAt: dueAt)
        if target.member != nil, target.member != id, target.isMemberLive, !isLive { return }
        let isRevived = isLive && !(target.member == id && target.isMemberLive)
        if isRevived, target.lastResponder != id {
            target.lastResponder = nil
            target.isConnected = false
        }
        target.member = id
        target.isMemberLive = isLive
        if isRevived, !target.isConnected {
            target.failures = 0
            target.dueAt = dueAt
        }
        targets[address] = target
        removeUnreferenced()
        updateNextDial()
    }

    /// Removes the address of a member that has left or was forgotten, unless a seed has it.
    mutating func removeMember(_ id: NodeID) {
        targets.updateAll { _, target in
            if target.member == id { target.member = nil }
        }
        removeUnreferenced()
        updateNextDial()
    }

    // MARK: Outcomes

    /// Records that a dial failed and schedules the next one.
    mutating func dialFailed(_ address: PeerAddress, _ turn: inout StepContext) {
        guard var target = targets[address] else { return dialEnded(address) }
        target.lastResponder = nil
        target.isConnected = false
        target.failures += 1
        target.dueAt = turn.now + delay(after: target, &turn)
        targets[address] = target
        dialEnded(address)
    }

    /// Records that a dial has become a connection with `id`, now the node that responds there.
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

    /// Records that the node at this address refuses this node for now, which postpones the next
    /// dial by ``MembershipSettings/deadDialDelayMax``.
    mutating func dialRefused(_ address: PeerAddress, at now: Instant) {
        targets[address]?.dueAt = now + settings.deadDialDelayMax
        updateNextDial()
    }

    /// Records that there is a connection with `id`, in whichever direction it was dialled; its
    /// addresses are not dialled meanwhile.
    mutating func connected(_ id: NodeID) {
        targets.updateAll { _, target in
            if target.owner == id { target.isConnected = true }
        }
        updateNextDial()
    }

    /// Records that the last connection with `id` has closed.
    ///
    /// The member is dialled at once after a small jitter. A connection shorter than
    /// ``MembershipSettings/dialDelayMax`` counts as a failure and the usual delay applies.
    mutating func disconnected(_ id: NodeID, _ turn: inout StepContext) {
        for address in targets.keys {
            guard var target = targets[address], target.owner == id, target.isConnected else {
                continue
            }
            target.isConnected = false
            if turn.now - target.openedAt < settings.dialDelayMax {
                target.failures += 1
                target.dueAt = max(target.dueAt, turn.now + delay(after: target, &turn))
            } else {
                target.failures = 0
                target.dueAt = turn.now + turn.jitter(upTo: .milliseconds(200))
            }
            targets[address] = target
        }
        updateNextDial()
    }

    /// Schedules a second connection with `id` beside the present one, if an address is known.
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

    /// Dials the addresses that are due, the longest due first, up to the maximum number in
    /// progress.
    mutating func dialDue(_ turn: inout StepContext) {
        guard let nextDialAt, nextDialAt <= turn.now else { return }
        let due = targets.keys.indices.filter { index in
            let target = targets.values[index]
            return !target.isDialling && !target.isConnected && target.dueAt <= turn.now
        }.sorted { targets.values[$0].dueAt < targets.values[$1].dueAt }
        for address in due.prefix(settings.dialsMax - dialCount).map({ targets.keys[$0] }) {
            targets[address]?.isDialling = true
            dialCount += 1
            turn.effects.append(.dial(address))
        }
        updateNextDial()
    }

    // MARK: Helpers

    /// Ends the dial to `address`, if one is in progress; an address that nothing names is dropped.
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
        for (address, target) in zip(targets.keys, targets.values)
        where !target.isSeed && target.member == nil && !target.isDialling {
            targets[address] = nil
        }
    }

    /// Returns the delay after failures: random between half and all of a limit that doubles with
    /// each failure, up to a maximum that is higher where neither a seed nor a live member is.
    private func delay(after target: DialTarget, _ turn: inout StepContext) -> Interval {
        let isWanted = target.isSeed || target.isMemberLive
        let most = isWanted ? settings.dialDelayMax : settings.deadDialDelayMax
        let doublings = min(target.failures - 1, 10)
        let doubled = settings.dialDelayMin.nanoseconds << Int64(max(0, doublings))
        let half = Interval(nanoseconds: min(most.nanoseconds, doubled) / 2)
        return half + turn.jitter(upTo: half)
    }

    /// Sets ``nextDialAt`` from the addresses that are neither dialled nor connected.
    private mutating func updateNextDial() {
        guard dialCount < settings.dialsMax else {
            nextDialAt = nil
            return
        }
        var next: Instant?
        for target in targets.values where !target.isDialling && !target.isConnected {
            next = next.map { min($0, target.dueAt) } ?? target.dueAt
        }
        nextDialAt = next
    }
}
