import Ground

/// Whom to dial, and when: every address that a seed or a member that has not left is reached at,
/// unless the member that answers there is connected.
///
/// An address is remembered for as long as something names it, so that a cluster that was split
/// finds itself again. Waits double with failures and are jittered; dials under way are limited.
struct DialPlan: Sendable {
    private struct Contact: Sendable {
        var isSeed = false
        /// The member whose record has this address, and whether it is live.
        var named: NodeID?
        var isNamedLive = false
        /// Who answered here last: a seed's address may be another one than its record's.
        var answered: NodeID?
        /// Who would answer is connected.
        var isHeld = false
        var isDialling = false
        var failures = 0
        var openedAt = Instant.zero
        var dueAt: Instant

        var owner: NodeID? { answered ?? named }
    }

    private var contacts = SortedTable<PeerAddress, Contact>()
    private var dialling = 0
    private let settings: Membership.Settings
    /// When an address is to be dialled; nil if none is, or if as many dials are under way as may
    /// be.
    private(set) var nextDial: Instant?

    init(settings: Membership.Settings) {
        self.settings = settings
    }

    /// Addresses that are remembered.
    var count: Int { contacts.count }

    // MARK: Who is where

    mutating func seedsResolved(_ addresses: [PeerAddress], _ turn: inout Turn) {
        let seeds = Set(addresses.sorted().prefix(settings.seedsMax))
        contacts.updateAll { address, contact in contact.isSeed = seeds.contains(address) }
        for address in seeds.sorted() where contacts[address] == nil {
            let dueAt = turn.now + turn.jitter(upTo: .milliseconds(100))
            contacts[address] = Contact(isSeed: true, dueAt: dueAt)
        }
        dropUnnamed()
        refresh()
    }

    /// A live or dead member's record has this address; it is not dialled before `dueAt`.
    mutating func named(_ address: PeerAddress, _ id: NodeID, isLive: Bool, dueAt: Instant) {
        for other in contacts.keys where other != address && contacts[other]?.named == id {
            contacts[other]?.named = nil
        }
        var contact = contacts[address] ?? Contact(dueAt: dueAt)
        if contact.named != nil, contact.named != id, contact.isNamedLive, !isLive { return }
        let isRevived = isLive && !(contact.named == id && contact.isNamedLive)
        if isRevived, contact.answered != id {
            contact.answered = nil
            contact.isHeld = false
        }
        contact.named = id
        contact.isNamedLive = isLive
        if isRevived, !contact.isHeld {
            contact.failures = 0
            contact.dueAt = dueAt
        }
        contacts[address] = contact
        dropUnnamed()
        refresh()
    }

    /// A member has left or is forgotten.
    mutating func unnamed(_ id: NodeID) {
        contacts.updateAll { _, contact in
            if contact.named == id { contact.named = nil }
        }
        dropUnnamed()
        refresh()
    }

    // MARK: What became of it

    mutating func failed(_ address: PeerAddress, _ turn: inout Turn) {
        guard var contact = contacts[address] else { return ended(address) }
        contact.answered = nil
        contact.isHeld = false
        contact.failures += 1
        contact.dueAt = turn.now + delay(after: contact, &turn)
        contacts[address] = contact
        ended(address)
    }

    /// A dial has become a connection with `id`.
    mutating func opened(_ address: PeerAddress, _ id: NodeID, at now: Instant) {
        contacts[address]?.answered = id
        contacts[address]?.openedAt = now
        contacts[address]?.dueAt = now + settings.dialDelayMin
        ended(address)
    }

    /// This node's own address.
    mutating func openedToSelf(_ address: PeerAddress, at now: Instant) {
        contacts[address]?.dueAt = now + settings.selfDialDelay
        ended(address)
    }

    /// Whoever is at this address does not take this node for now.
    mutating func refused(_ address: PeerAddress, at now: Instant) {
        contacts[address]?.dueAt = now + settings.deadDialDelayMax
        refresh()
    }

    /// There is a connection with `id`, whoever dialled.
    mutating func connected(_ id: NodeID) {
        contacts.updateAll { _, contact in
            if contact.owner == id { contact.isHeld = true }
        }
        refresh()
    }

    /// There is none any more: it is dialled at once, but a connection that did not last counts as
    /// a failure.
    mutating func disconnected(_ id: NodeID, _ turn: inout Turn) {
        for address in contacts.keys {
            guard var contact = contacts[address], contact.owner == id, contact.isHeld else {
                continue
            }
            contact.isHeld = false
            if turn.now - contact.openedAt < settings.dialDelayMax {
                contact.failures += 1
                contact.dueAt = max(contact.dueAt, turn.now + delay(after: contact, &turn))
            } else {
                contact.failures = 0
                contact.dueAt = turn.now + turn.jitter(upTo: .milliseconds(200))
            }
            contacts[address] = contact
        }
        refresh()
    }

    /// Another connection with `id` is wanted beside the one there is.
    mutating func renew(_ id: NodeID, at now: Instant) {
        let held = contacts.keys.filter { address in
            contacts[address]?.isHeld == true && contacts[address]?.owner == id
        }
        guard let address = held.first(where: { contacts[$0]?.named == id }) ?? held.first else {
            return
        }
        contacts[address]?.isHeld = false
        contacts[address]?.failures = 0
        contacts[address]?.dueAt = now
        refresh()
    }

    /// The addresses to dial now.
    mutating func takeDue(_ turn: inout Turn) -> [PeerAddress] {
        var due: [PeerAddress] = []
        let waiting = contacts.keys.indices.filter { index in
            let contact = contacts.values[index]
            return !contact.isDialling && !contact.isHeld && contact.dueAt <= turn.now
        }.sorted { contacts.values[$0].dueAt < contacts.values[$1].dueAt }
        for index in waiting.prefix(settings.dialsMax - dialling) {
            let address = contacts.keys[index]
            contacts[address]?.isDialling = true
            due.append(address)
        }
        dialling += due.count
        refresh()
        return due
    }

    // MARK: Pieces

    private mutating func ended(_ address: PeerAddress) {
        if contacts[address]?.isDialling == true {
            contacts[address]?.isDialling = false
            dialling -= 1
        }
        dropUnnamed()
        refresh()
    }

    /// What a dial is under way to is dropped when it ends.
    private mutating func dropUnnamed() {
        for (address, contact) in zip(contacts.keys, contacts.values)
        where !contact.isSeed && contact.named == nil && !contact.isDialling {
            contacts[address] = nil
        }
    }

    private func delay(after contact: Contact, _ turn: inout Turn) -> Interval {
        let isWanted = contact.isSeed || contact.isNamedLive
        let most = isWanted ? settings.dialDelayMax : settings.deadDialDelayMax
        let doublings = min(contact.failures - 1, 10)
        let doubled = settings.dialDelayMin.nanoseconds << Int64(max(0, doublings))
        let half = Interval(nanoseconds: min(most.nanoseconds, doubled) / 2)
        return half + turn.jitter(upTo: half)
    }

    private mutating func refresh() {
        guard dialling < settings.dialsMax else {
            nextDial = nil
            return
        }
        var next: Instant?
        for contact in contacts.values where !contact.isDialling && !contact.isHeld {
            next = next.map { min($0, contact.dueAt) } ?? contact.dueAt
        }
        nextDial = next
    }
}
