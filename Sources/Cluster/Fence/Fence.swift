package import Ground

/// The guard that stops this node from serving fresh entries unless it is proven current (Design,
/// "Fenced unless proven current").
///
/// A function of the current time, of when each member was sent a request, and of which responses
/// are applied. It starts closed. A contact counts from the instant its request was **sent**, and
/// only once everything that the response names is applied here; then this node lacks nothing that
/// was durable at that member at that instant. There are no timers: ``window`` is compared with the
/// clock.
package struct Fence: Sendable {
    /// The settings of the fence and of voter set changes.
    package struct Settings: Hashable, Sendable {
        /// The maximum time for which a node serves what a purge covers after the purge is durable.
        ///
        /// A purge is durable once a majority has synced it. `nil` is the setting `off`: no node is
        /// ever fenced and nothing is guaranteed.
        package var duration: Interval? = .seconds(10)
        /// The time of silence after which an unfenced node proposes to remove a voter.
        package var removeAfter = Interval.seconds(3_600)
        /// The time after which an undecided change is tried again.
        package var proposalTimeout = Interval.seconds(2)
        /// The delay between consecutive members that would propose the same change.
        package var proposalDelay = Interval.milliseconds(500)
        /// True if this node is in no cluster and never will be.
        package var isSingleNode = false
        /// The deliberate mistakes, for tests of the checks that must detect them.
        package var mutations: Mutations = []

        /// Creates the default settings.
        package init() {}

        /// The time for which a contact counts; 60 s without a fence.
        var contactLifetime: Interval { duration ?? .seconds(60) }
    }

    /// Deliberate mistakes for tests; no configuration sets them.
    package struct Mutations: OptionSet, Hashable, Sendable {
        /// The bits of the set.
        package let rawValue: UInt8

        /// Creates a set from its bits.
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Contacts are timed from the response instead of the request.
        package static let contactTimedFromResponse = Mutations(rawValue: 1 << 0)
        /// A voter that was replaced by another node of its name is not removed.
        package static let replacedVotersStay = Mutations(rawValue: 1 << 1)
        /// A node that adopts a recovered lineage continues to trust its stored entries.
        package static let recoveryTrustsStoredEntries = Mutations(rawValue: 1 << 2)
        /// The operator can remove a majority.
        package static let majorityRemoved = Mutations(rawValue: 1 << 3)
        /// A response counts although what it names is not applied here.
        package static let responseTrustedBeforeApplied = Mutations(rawValue: 1 << 4)
    }

    /// The members whose responses are needed to prove this node current.
    package struct QuorumRequirement: Hashable, Sendable {
        /// The members of the voter set.
        package var voters: [NodeID]
        /// The instant from which contacts with a majority of ``voters`` alone suffice; `nil` until
        /// the set is settled.
        package var settledAt: Instant?
        /// The previous set, if contacts with a majority of both sets suffice.
        package var joint: JointSet?

        /// The previous voter set in a joint majority.
        package struct JointSet: Hashable, Sendable {
            /// The members of the previous set.
            package var members: [NodeID]
            /// The instant from which contacts count.
            package var since: Instant
        }
    }

    /// A response that counts as a contact once the missing positions are applied here.
    private struct PendingContact: Sendable {
        var sentAt: Instant
        var missing: [StreamPosition]
    }

    /// The maximum number of responses of one member that wait for records; the last is replaced.
    private static let pendingContactsMax = 4

    /// The settings that the fence was created with.
    package let settings: Settings
    let own: NodeID
    /// The times until which, and since when, the fence is open or closed.
    package private(set) var window: FenceWindow
    /// The instant since which the fence is continuously open, as of the last event; `nil` if
    /// closed.
    package private(set) var currentSince: Instant?
    /// The latest contact that counts, by the instant at which its request was sent.
    private var contacts = SortedTable<NodeID, Instant>()
    private var pendingContacts = SortedTable<NodeID, [PendingContact]>()
    /// The recent rounds, oldest first; rounds older than the fence duration prove nothing.
    private var rounds: [(number: UInt64, sentAt: Instant)] = []
    private var nextRound: UInt64
    private(set) var applied = PositionVector()
    /// The end of what is already proven, which stays proven whatever set the node learns of later.
    private var provenUntil = Instant.zero

    /// Creates a closed fence, or an open one if there is no fence duration.
    ///
    /// - Parameters:
    ///   - own: This node.
    ///   - settings: The settings.
    ///   - firstRound: A random number, so that a response to this node's former process matches no
    ///     round.
    ///   - now: The current time.
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

    // MARK: Requests and responses

    /// Returns the number for requests sent from `now` on: of a round that has just begun, else of
    /// a new one.
    ///
    /// A round counts as just begun for 1/16 of the contact lifetime.
    mutating func round(at now: Instant) -> UInt64 {
        let fence = settings.contactLifetime
        let freshness = Interval(nanoseconds: fence.nanoseconds / 16)
        if let last = rounds.last, last.sentAt <= now, now - last.sentAt < freshness {
            return last.number
        }
        return beginRound(at: now)
    }

    /// Begins a round, whose requests must all be sent after `now`, and returns its number.
    package mutating func beginRound(at now: Instant) -> UInt64 {
        if let fence = settings.duration { rounds.removeAll { $0.sentAt + fence <= now } }
        if rounds.count >= 32 { rounds.removeFirst() }
        let number = nextRound
        nextRound &+= 1
        rounds.append((number, now))
        return number
    }

    /// Counts a contact with `member` from the sending of `round`, once `synced` is applied here.
    ///
    /// A response to an unknown or dropped round is ignored. Of responses that wait for records the
    /// first are kept, and a further one replaces the last.
    package mutating func responseReceived(
        _ round: UInt64, by member: NodeID, synced: [StreamPosition], now: Instant
    ) {
        let requestedAt = rounds.first { $0.number == round }?.sentAt
        guard
            let sentAt = settings.mutations.contains(.contactTimedFromResponse) ? now : requestedAt
        else {
            return
        }
        let isTrusted = settings.mutations.contains(.responseTrustedBeforeApplied)
        let missing = isTrusted ? [] : synced.filter { !applied.covers($0) }
        guard !missing.isEmpty else { return recordContact(sentAt, of: member) }
        // The first is kept: with a purge in every response the last would never be caught up with.
        var pending = pendingContacts[member] ?? []
        if pending.count == Self.pendingContactsMax { pending.removeLast() }
        pending.append(PendingContact(sentAt: sentAt, missing: missing))
        pendingContacts[member] = pending
    }

    /// Records that everything up to these positions is applied here, so that no later decision
    /// misses it, and counts the contacts that waited for that.
    package mutating func applied(_ positions: [StreamPosition]) {
        applied.merge(positions)
        for (member, pending) in zip(pendingContacts.keys, pendingContacts.values) {
            for contact in pending where applied.covers(contact.missing) {
                recordContact(contact.sentAt, of: member)
            }
            let rest = pending.filter { !applied.covers($0.missing) }
            pendingContacts[member] = rest.isEmpty ? nil : rest
        }
    }

    /// Removes a stream that nodes no longer name; no contact waits for it any more.
    mutating func removeStream(_ process: ProcessID) {
        applied.remove(process)
        pendingContacts.updateAll { _, pending in
            for index in pending.indices {
                pending[index].missing.removeAll { $0.process == process }
            }
        }
    }

    /// Counts a contact with `member`, unless a later one counts already.
    private mutating func recordContact(_ sentAt: Instant, of member: NodeID) {
        contacts[member] = max(contacts[member] ?? sentAt, sentAt)
    }

    /// Drops the contacts with members other than `members`.
    mutating func retainContacts(of members: Set<NodeID>) {
        for member in contacts.keys where !members.contains(member) { contacts[member] = nil }
        for member in pendingContacts.keys where !members.contains(member) {
            pendingContacts[member] = nil
        }
    }

    /// Returns when the last request was sent to `member` whose response is applied here; `nil` if
    /// there is none.
    package func lastContact(of member: NodeID) -> Instant? { contacts[member] }

    /// Returns true if a response to a request of the last contact lifetime was received and
    /// applied.
    ///
    /// Always true for this node itself.
    package func isInContact(with member: NodeID, at now: Instant) -> Bool {
        guard member != own else { return true }
        return contacts[member].map { now < $0 + settings.contactLifetime } ?? false
    }

    // MARK: The window

    /// Moves the window to what is proven under `demand` or was proven earlier; `nil` closes it.
    ///
    /// Without a fence duration the window stays open.
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

    /// Returns the latest instant before which nothing durable is missing here; `nil` without
    /// enough contacts.
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

    /// Returns true if a majority of `members`, counting this node, responded to requests sent from
    /// `since` on.
    func hasMajorityContact(of members: [NodeID], since: Instant) -> Bool {
        majorityStart(members, since: since) != nil
    }

    /// Returns the earliest contact of the latest majority of `members` with contacts from `since`
    /// on; `nil` without one.
    ///
    /// This node is always in contact with itself.
    private func majorityStart(_ members: [NodeID], since: Instant) -> Instant? {
        let starts = members.compactMap { member in
            member == own ? .distantFuture : contacts[member].flatMap { $0 < since ? nil : $0 }
        }
        let needed = members.count / 2 + 1
        guard starts.count >= needed else { return nil }
        return starts.sorted(by: >)[needed - 1]
    }
}

/// The fence state that the path of a hit needs: until when this node may serve fresh entries.
///
/// The two numbers are published together. A reader that loads them separately, ``currentUntil``
/// first, at worst takes a fence that has just opened for one that closes later.
package struct FenceWindow: Hashable, Sendable {
    /// The node is current before this instant, if it receives nothing more.
    ///
    /// ``Instant/distantFuture`` if it needs no other node.
    package var currentUntil: Instant
    /// The instant at which the fence last closed, or closes if the node receives nothing more.
    ///
    /// The start of a node that was never current.
    package var closedAt: Instant

    /// Creates a window that is closed since `now`.
    package init(closedAt now: Instant) {
        currentUntil = .zero
        closedAt = now
    }

    /// Creates a window from its parts.
    package init(currentUntil: Instant, closedAt: Instant) {
        self.currentUntil = currentUntil
        self.closedAt = closedAt
    }

    /// Returns true if the node is current at `now`; must be evaluated with a new clock reading at
    /// each decision.
    package func isCurrent(at now: Instant) -> Bool { now < currentUntil }

    /// Makes the window current until `until`; if that is past, the window closes now unless it is
    /// closed.
    mutating func move(to until: Instant, now: Instant) {
        if until > now {
            closedAt = until
        } else if isCurrent(at: now) {
            closedAt = now
        }
        currentUntil = until
    }
}

/// The permission that the fence gives for an entry.
///
/// A node that is not current may lack a purge. But an entry that the origin validated in response
/// to a request that began at some instant was not purged before that instant. So for one
/// ``Fence/Settings/duration`` after it the entry is not served too late.
package enum FenceDecision: Hashable, Sendable {
    /// The fence is open: the usual rules apply.
    case unrestricted
    /// The entry was validated so recently that the usual rules apply until then.
    case unrestrictedUntil(Instant)
    /// The entry must be validated first.
    ///
    /// If it fails while the fence is still closed, the entry may be served stale before
    /// `staleUntil`, unless other rules forbid it. If that is `nil` or past, the response is 504.
    case revalidate(staleUntil: Instant?)

    /// Decides about one entry at `now`, which must be a new clock reading for each decision.
    ///
    /// - Parameters:
    ///   - now: The current time on this node's boot clock.
    ///   - window: The published window.
    ///   - validatedAt: When the **request** began that the origin last answered with this entry or
    ///     its validation, on this node's boot clock. For an entry from a peer: when the peer was
    ///     asked, minus the age of the validation that it named.
    ///   - fence: The fence duration.
    ///   - staleIfError: The time after the closing of the fence during which the entry may be
    ///     served if the origin fails; `nil` if not granted.
    /// - Returns: What is permitted now; must not be kept for a later decision.
    package static func decide(
        now: Instant, window: FenceWindow, validatedAt: Instant, fence: Interval,
        staleIfError: Interval?
    ) -> FenceDecision {
        if window.isCurrent(at: now) { return .unrestricted }
        let until = validatedAt + fence
        // A validation in the future comes from another clock.
        if now < until, validatedAt <= now { return .unrestrictedUntil(until) }
        let end = staleIfError.map { min(window.closedAt, now) + $0 }
        return .revalidate(staleUntil: end.flatMap { now < $0 ? $0 : nil })
    }
}
