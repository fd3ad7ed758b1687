package import Ground

/// Whether this node is proven current: a function of the instant, of whom it asked when, and of
/// what they answered that it has applied.
///
/// It begins closed. A contact counts from the instant its question was **sent**, and only once
/// everything that the answer names is applied here: then nothing that was durable at that member
/// at that instant is missing here. Nothing here is a timer: what is asked of ``window`` is a
/// comparison with the clock.
package struct Fence: Sendable {
    package struct Settings: Hashable, Sendable {
        /// How long after a purge is durable at a majority nobody serves what it covers; nil is
        /// `off`: nobody is ever fenced, and nothing is promised.
        package var duration: Interval? = .seconds(10)
        /// A counted member that says nothing to an unfenced node for so long is forgotten.
        package var removeAfter = Interval.seconds(3_600)
        /// A change that is not decided after so long is tried again.
        package var proposalTimeout = Interval.seconds(2)
        /// So much later than the member before it a member proposes what all of them see.
        package var proposalDelay = Interval.milliseconds(500)
        /// This node is in no cluster, and never will be.
        package var isSingleNode = false
        /// What is done wrong on purpose, for tests of those who are to find it.
        package var mutations: Mutations = []

        package init() {}

        /// For how long a contact counts; without a fence nothing hurries.
        var contactLifetime: Interval { duration ?? .seconds(60) }
    }

    /// Mistakes that a test can have made; no configuration leads here.
    package struct Mutations: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        package static let contactTimedFromResponse = Mutations(rawValue: 1 << 0)
        /// Who was replaced by another of its name stays counted.
        package static let replacedVotersStay = Mutations(rawValue: 1 << 1)
        /// Whoever leaves a line of sets for a recovered one goes on to trust what it holds.
        package static let recoveryTrustsStoredEntries = Mutations(rawValue: 1 << 2)
        /// A majority can be forgotten by those that stay.
        package static let majorityRemoved = Mutations(rawValue: 1 << 3)
        /// An answer counts though what it names is not applied here.
        package static let responseTrustedBeforeApplied = Mutations(rawValue: 1 << 4)
    }

    /// Whose answers are needed.
    package struct QuorumRequirement: Hashable, Sendable {
        package var voters: [NodeID]
        /// Contacts from then on prove something by a majority of ``set`` alone; nil until it is
        /// settled.
        package var settledAt: Instant?
        /// The set before, if a majority of both proves something: contacts from `since` on.
        package var joint: JointSet?

        package struct JointSet: Hashable, Sendable {
            package var members: [NodeID]
            package var since: Instant
        }
    }

    private struct PendingContact: Sendable {
        var sentAt: Instant
        var missing: [StreamPosition]
    }

    /// Answers of one member that wait for records; the last gives way.
    private static let pendingContactsMax = 4

    package let settings: Settings
    let own: NodeID
    /// Open or closed, now and later.
    package private(set) var window: FenceWindow
    /// Since when it has been open without a break, as far as events tell; nil if it is not.
    package private(set) var currentSince: Instant?
    /// The newest that counts, by the instant of its question.
    private var contacts = SortedTable<NodeID, Instant>()
    private var pendingContacts = SortedTable<NodeID, [PendingContact]>()
    /// Oldest first; older ones than a fence prove nothing any more.
    private var rounds: [(number: UInt64, sentAt: Instant)] = []
    private var nextRound: UInt64
    private(set) var applied = PositionVector()
    /// What was proven stays so, whatever set the node learns of later.
    private var provenUntil = Instant.zero

    /// `firstRound` is drawn by dice, so that an answer to this node's former process is none.
    package init(own: NodeID, settings: Settings, firstRound: UInt64, now: Instant) {
        self.own = own
        self.settings = settings
        nextRound = firstRound
        window = FenceWindow(closedAt: now)
        if settings.duration == nil {
            window = FenceWindow(currentUntil: .distantFuture, closedAt: .distantFuture)
            currentSince = now
        }
    }

    // MARK: Questions and answers

    /// The number to put on questions that are sent from `now` on: a new round's or, of one that
    /// has just begun, the same again.
    mutating func round(at now: Instant) -> UInt64 {
        let fence = settings.contactLifetime
        let freshness = Interval(nanoseconds: fence.nanoseconds / 16)
        if let last = rounds.last, last.sentAt <= now, now - last.sentAt < freshness {
            return last.number
        }
        return beginRound(at: now)
    }

    /// A new round, whose questions are all sent after `now`.
    package mutating func beginRound(at now: Instant) -> UInt64 {
        if let fence = settings.duration { rounds.removeAll { $0.sentAt + fence <= now } }
        if rounds.count >= 32 { rounds.removeFirst() }
        let number = nextRound
        nextRound &+= 1
        rounds.append((number, now))
        return number
    }

    /// `member` has answered the question of a round: it has synced what is `named`.
    package mutating func responseReceived(
        _ round: UInt64, by member: NodeID, synced: [StreamPosition], now: Instant
    ) {
        let asked = rounds.first { $0.number == round }?.sentAt
        guard let sentAt = settings.mutations.contains(.contactTimedFromResponse) ? now : asked
        else {
            return
        }
        let isTrusted = settings.mutations.contains(.responseTrustedBeforeApplied)
        let missing = isTrusted ? [] : synced.filter { !applied.covers($0) }
        guard !missing.isEmpty else { return recordContact(sentAt, of: member) }
        // The first is kept: with a purge in every answer the last would never be caught up with.
        var line = pendingContacts[member] ?? []
        if line.count == Self.pendingContactsMax { line.removeLast() }
        line.append(PendingContact(sentAt: sentAt, missing: missing))
        pendingContacts[member] = line
    }

    /// Everything up to these positions is applied here: no decision that follows misses it.
    package mutating func applied(_ positions: [StreamPosition]) {
        applied.merge(positions)
        for (member, line) in zip(pendingContacts.keys, pendingContacts.values) {
            for response in line where applied.covers(response.missing) {
                recordContact(response.sentAt, of: member)
            }
            let rest = line.filter { !applied.covers($0.missing) }
            pendingContacts[member] = rest.isEmpty ? nil : rest
        }
    }

    /// Nobody names the stream any more.
    mutating func removeStream(_ process: ProcessID) {
        applied.remove(process)
        pendingContacts.updateAll { _, line in
            for index in line.indices { line[index].missing.removeAll { $0.process == process } }
        }
    }

    private mutating func recordContact(_ sentAt: Instant, of member: NodeID) {
        contacts[member] = max(contacts[member] ?? sentAt, sentAt)
    }

    /// Contacts with others than these are remembered no longer.
    mutating func retainContacts(of members: Set<NodeID>) {
        for member in contacts.keys where !members.contains(member) { contacts[member] = nil }
        for member in pendingContacts.keys where !members.contains(member) {
            pendingContacts[member] = nil
        }
    }

    /// When the last question was sent to `member` whose answer is applied here.
    package func lastContact(of member: NodeID) -> Instant? { contacts[member] }

    /// True if a question sent within the last fence was answered, and what it named is applied.
    package func isInContact(with member: NodeID, at now: Instant) -> Bool {
        guard member != own else { return true }
        return contacts[member].map { now < $0 + settings.contactLifetime } ?? false
    }

    // MARK: The window

    /// Moves the window to what is proven under `demand`, or was under a former one; nil closes it.
    package mutating func update(_ demand: QuorumRequirement?, now: Instant) {
        guard let fence = settings.duration else { return }
        if demand == nil { provenUntil = .zero }
        var until = provenUntil
        if let start = demand.flatMap(provenStart) {
            // A node that is a majority by itself has proven nothing beyond `now`, for its set may
            // change.
            provenUntil = max(provenUntil, min(start, now) + fence)
            until = max(provenUntil, start + fence)
        }
        if !window.isCurrent(at: now) { currentSince = nil }
        window.move(to: until, now: now)
        currentSince = window.isCurrent(at: now) ? currentSince ?? now : nil
    }

    /// The latest instant before which nothing durable is missing here; nil if there is none.
    private func provenStart(_ demand: QuorumRequirement) -> Instant? {
        var start = demand.settledAt.flatMap { majorityStart(demand.voters, since: $0) }
        if let joint = demand.joint,
            let first = majorityStart(demand.voters, since: joint.since),
            let second = majorityStart(joint.members, since: joint.since)
        {
            start = max(start ?? .zero, min(first, second))
        }
        return start
    }

    /// A majority of `members`, this node included, was asked from `since` on, and has answered.
    func hasMajorityContact(of members: [NodeID], since: Instant) -> Bool {
        majorityStart(members, since: since) != nil
    }

    /// The earliest contact of the latest majority; this node is in contact with itself always.
    private func majorityStart(_ members: [NodeID], since: Instant) -> Instant? {
        let starts = members.compactMap { member in
            member == own ? .distantFuture : contacts[member].flatMap { $0 < since ? nil : $0 }
        }
        let needed = members.count / 2 + 1
        guard starts.count >= needed else { return nil }
        return starts.sorted(by: >)[needed - 1]
    }
}

/// Until when this node may serve what is fresh: all that the path of a hit needs of the fence.
///
/// Two numbers, to be published together. Whoever reads them apart, ``currentUntil`` first, at
/// worst takes a fence that has just opened for one that closes later.
package struct FenceWindow: Hashable, Sendable {
    /// The node is proven current at every instant before this one, if it hears nothing more;
    /// ``Instant/distantFuture`` if it needs nobody.
    package var currentUntil: Instant
    /// When the fence closed last, or will close if nothing more is heard; the start of a node that
    /// was never proven current.
    package var closedAt: Instant

    /// Closed since `now`.
    package init(closedAt now: Instant) {
        currentUntil = .zero
        closedAt = now
    }

    package init(currentUntil: Instant, closedAt: Instant) {
        self.currentUntil = currentUntil
        self.closedAt = closedAt
    }

    /// To be asked with the clock's present reading at each decision, and never kept.
    package func isCurrent(at now: Instant) -> Bool { now < currentUntil }

    /// From `now` on current until `until`, which may have gone by.
    mutating func move(to until: Instant, now: Instant) {
        if until > now {
            closedAt = until
        } else if isCurrent(at: now) {
            closedAt = now
        }
        currentUntil = until
    }
}

/// What may be done with an entry, as far as the fence is concerned.
///
/// A node that is not proven current may lack a purge. It knows one thing all the same: what the
/// origin has validated in answer to a request that began at some instant was not purged before
/// that instant, so that for one ``Fence/Settings/fence`` after it nothing is served too late.
package enum FenceDecision: Hashable, Sendable {
    /// The fence is open: the entry is judged as always.
    case unrestricted
    /// Validated so recently that it is judged as always, until then.
    case unrestrictedUntil(Instant)
    /// Ask the origin first. If it fails, and at that instant the fence is still closed, the entry
    /// may be served stale before `staleUntil`, where nothing else forbids it; without one, or
    /// after it: 504.
    case revalidate(staleUntil: Instant?)

    /// By the clock's present reading, which is not to be kept from one decision to the next.
    ///
    /// `validatedAt` is when the **request** began that the origin last answered with this entry or
    /// with its validation, on this node's boot clock; of an entry that a peer sent, when the peer
    /// was asked, minus the age of the validation that it named. `staleIfError` is how long after
    /// the fence closed the entry may be served if the origin fails; nil if that is not granted.
    package static func decide(
        now: Instant, window: FenceWindow, validatedAt: Instant, fence: Interval,
        staleIfError: Interval?
    ) -> FenceDecision {
        if window.isCurrent(at: now) { return .unrestricted }
        let until = validatedAt + fence
        // A validation from the future is of another clock.
        if now < until, validatedAt <= now { return .unrestrictedUntil(until) }
        let end = staleIfError.map { min(window.closedAt, now) + $0 }
        return .revalidate(staleUntil: end.flatMap { now < $0 ? $0 : nil })
    }
}
