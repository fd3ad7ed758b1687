import Ground

/// Whom to dial, and when: every address that a seed or a member that has not left is reached at,
/// unless the member that answers there is connected.
///
/// An address is remembered for as long as something names it, so that a cluster that was split
/// finds itself again. Waits double with failures and are jittered; dials under way are limited.
struct DialSchedule: Sendable {
    private struct DialTarget: Sendable {
        var isSeed = false
        /// The member whose record has this address, and whether it is live.
        var member: NodeID?
        var isMemberLive = false
        /// Who answered here last: a seed's address may be another one than its record's.
        var lastResponder: NodeID?
        /// Who would answer is connected.
        var isConnected = false
        var isDialling = false
        var failures = 0
        var openedAt = Instant.zero
        var dueAt: Instant

        var owner: NodeID? { lastResponder ?? member }
    }

    private var targets = SortedTable<PeerAddress, DialTarget>()
    private var dialCount = 0
    private let settings: Membership.Settings
    /// When an address is to be dialled; nil if none is, or if as many dials are under way as may
    /// be.
    private(set) var nextDialAt: Instant?

    init(settings: Membership.Settings) {
        self.settings = settings
    }

    /// Addresses that are remembered.
    var count: Int { targets.count }

    // MARK: Who is where

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

    /// A live or dead member's record has this address; it is not dialled before `dueAt`.
    mutating func addMember(_ address: PeerAddress, _ id: NodeID, isLive: Bool, dueAt: Instant) {
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

    /// A member has left or is forgotten.
    mutating func removeMember(_ id: NodeID) {
        targets.updateAll { _, contact in
            if contact.member == id { contact.member = nil }
        }
        removeUnreferenced()
        updateNextDial()
    }

    // MARK: What became of it

    mutating func dialFailed(_ address: PeerAddress, _ turn: inout StepContext) {
        guard var contact = targets[address] else { return dialEnded(address) }
        contact.lastResponder = nil
        contact.isConnected = false
        contact.failures += 1
        contact.dueAt = turn.now + delay(after: contact, &turn)
        targets[address] = contact
        dialEnded(address)
    }

    /// A dial has become a connection with `id`.
    mutating func dialSucceeded(_ address: PeerAddress, _ id: NodeID, at now: Instant) {
        targets[address]?.lastResponder = id
        targets[address]?.openedAt = now
        targets[address]?.dueAt = now + settings.dialDelayMin
        dialEnded(address)
    }

    /// This node's own address.
    mutating func dialedSelf(_ address: PeerAddress, at now: Instant) {
        targets[address]?.dueAt = now + settings.selfDialDelay
        dialEnded(address)
    }

    /// Whoever is at this address does not take this node for now.
    mutating func dialRefused(_ address: PeerAddress, at now: Instant) {
        targets[address]?.dueAt = now + settings.deadDialDelayMax
        updateNextDial()
    }

    /// There is a connection with `id`, whoever dialled.
    mutating func connected(_ id: NodeID) {
        targets.updateAll { _, contact in
            if contact.owner == id { contact.isConnected = true }
        }
        updateNextDial()
    }

    /// There is none any more: it is dialled at once, but a connection that did not last counts as
    /// a failure.
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

    /// Another connection with `id` is wanted beside the one there is.
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

    /// The addresses to dial now.
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

    // MARK: Pieces

    private mutating func dialEnded(_ address: PeerAddress) {
        if targets[address]?.isDialling == true {
            targets[address]?.isDialling = false
            dialCount -= 1
        }
        removeUnreferenced()
        updateNextDial()
    }

    /// What a dial is under way to is dropped when it ends.
    private mutating func removeUnreferenced() {
        for (address, contact) in zip(targets.keys, targets.values)
        where !contact.isSeed && contact.member == nil && !contact.isDialling {
            targets[address] = nil
        }
    }

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
