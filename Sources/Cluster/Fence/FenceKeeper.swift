package import Ground

/// The fence and the counted members of one node: the shell has this one thing to tell.
///
/// In every event what is said of the count is taken in before the contact is counted, and the
/// window is moved last: no decision is made between.
package struct FenceKeeper: Sendable {
    package internal(set) var counted: CountedMembers
    package internal(set) var fence: Fence
    let own: NodeID
    /// The directory holds nothing that was ever served: this node may be the first of a cluster.
    private var mayOpen: Bool
    private(set) var synced = KnownPositions()
    /// Streams that were retired here, the last one last; still in ``synced``.
    private var retired: [ProcessID] = []
    /// Connected members, by id.
    private(set) var reached: [NodeID] = []
    /// Until when members are young, as far as this node can tell; see ``CountView/isYoung``.
    private var youngUntil = SortedTable<NodeID, Instant>()
    /// Sets whose majorities may have proven somebody current who is so still: until when, once so
    /// few may follow each still that they are no majority.
    private var formerSets: [(set: CountedSet, until: Instant?)] = []
    /// The fence stays closed until then: a member of the line that a recovered one has replaced,
    /// or a newcomer to it, may be current by answers from before.
    private var heldUntil: Instant?
    /// When anything came from a member last.
    private(set) var heardAt = SortedTable<NodeID, Instant>()
    private var nextRound: Instant
    /// With which of ``reached`` the next round begins that does not go to all.
    private var turn = 0
    var isLeaving = false
    /// Members that go, or went, by their own word.
    private(set) var departed: Set<NodeID> = []
    /// Members that do not run, by the operator's word.
    var goneByOrder: Set<NodeID> = []
    /// What is wished for, and since when.
    var wish: (change: CountChange, since: Instant)?
    /// The demand that was last asked for.
    private var demanded: Fence.Demand?
    /// What is to be done; whoever does it takes it out.
    package var news = FenceNews()

    /// A node that starts, with what the log's last checkpoint kept, nil if there is none, and the
    /// records of the count that the log holds, anybody's, in any order.
    ///
    /// It may open a cluster only if the log is neither damaged nor lost and the directory holds
    /// nothing that was ever served under a count. `firstRound` is drawn by dice.
    package init(
        own: NodeID, memory: CountedMembers.Memory?, replaying log: [CountRecord],
        mayOpen: Bool, settings: Fence.Settings, firstRound: UInt64, now: Instant
    ) {
        self.own = own
        counted = CountedMembers(own: own, memory: memory, replaying: log, now: now)
        fence = Fence(own: own, settings: settings, firstRound: firstRound, now: now)
        self.mayOpen = mayOpen && counted.standing == nil
        nextRound = now
        if let set = counted.standing?.set, let span = settings.fence, !settings.isAlone {
            youngUntil[own] = now + span
            if set.line.recovery > 0 { heldUntil = now + span }
        }
        fence.update(demand, now: now)
    }

    private var demand: Fence.Demand? { heldUntil == nil ? counted.demand : nil }

    /// To be published to whoever decides, after each event.
    package var window: FenceWindow { fence.window }

    /// What to say of this node with an answer or a confirmation, and what it has synced; both of
    /// this moment, and not to be kept for later.
    package func view(at now: Instant) -> (view: CountView, holds: [StreamPosition]) {
        // One that goes is connected for a moment after it was forgotten, and must not be counted
        // again: nobody could settle that.
        let isCurrent = window.isCurrent(at: now) && !isLeaving
        var view = counted.view(isCurrent: isCurrent)
        view.isYoung = youngUntil[own] != nil
        return (view, synced.positions)
    }

    /// A node may be current of which no member knows: it asked a majority, and all of that have
    /// started anew since, or count no more.
    var mayLackSomebody: Bool {
        guard let set = counted.standing?.set else { return false }
        let sets = [set] + formerSets.map(\.set)
        let isUnknown = sets.contains { former in
            former.isMajority(former.members.filter { !set.contains($0) } + youngUntil.keys)
        }
        // What this node itself has forgotten of the set before: it may have had a member less.
        let isYoung = youngUntil[own] != nil
        return isUnknown || (isYoung && youngUntil.count > (set.members.count - 1) / 2)
    }

    private mutating func outgrow(_ now: Instant) {
        for member in youngUntil.keys where youngUntil[member].map({ $0 <= now }) ?? false {
            youngUntil[member] = nil
        }
        formerSets.removeAll { $0.until.map { $0 <= now } ?? false }
        if let heldUntil, heldUntil <= now { self.heldUntil = nil }
    }

    /// Takes note that the set has changed, since it was `former`.
    private mutating func followSet(_ former: CountedSet?, _ now: Instant) {
        guard let set = counted.standing?.set, set != former, let span = fence.settings.fence else {
            return
        }
        if let former { formerSets.append((former, nil)) }
        for member in set.members where former?.contains(member) == false {
            heardAt[member] = max(heardAt[member] ?? now, now)
        }
        let recovery = former?.line.recovery ?? 0
        if set.line.recovery > recovery { heldUntil = now + span }
    }

    /// Takes note of former sets that no majority follows any more.
    private mutating func leaveFormerSets(_ now: Instant) {
        guard let span = fence.settings.fence, let set = counted.standing?.set else { return }
        for index in formerSets.indices where formerSets[index].until == nil {
            if isLeft(formerSets[index].set, for: set) { formerSets[index].until = now + span }
        }
    }

    /// No majority of `former` follows it any more: its members have said so; or the set after it
    /// has been changed too, by a majority that followed that; or the operator says that it does
    /// not run.
    private func isLeft(_ former: CountedSet, for set: CountedSet) -> Bool {
        guard former.line == set.line, set.generation == former.generation + 1 else { return true }
        return !former.isMajority(former.members.filter { !counted.hasLeft(former, $0) })
    }

    /// The round to name in a question that is about to be sent anyway.
    package mutating func round(at now: Instant) -> UInt64 { fence.round(at: now) }

    /// `member` is to be asked, for there is a new connection with it.
    mutating func ask(_ member: NodeID, now: Instant) {
        news.questions.append(.init(members: [member], round: round(at: now)))
    }

    /// When ``FenceEvent/ticked`` is wanted; changes with every event.
    package var nextTick: Instant {
        let ends = youngUntil.values + formerSets.compactMap(\.until)
        let vote = counted.voteIsRepeated(after: fence.settings.attemptPatience)
        return [nextRound, counted.attempt?.endsAt, proposalDue, heldUntil, vote, ends.min()]
            .compactMap { $0 }.min() ?? nextRound
    }

    /// Takes in what happened at `now`; what is to be done is news.
    package mutating func handle(_ event: FenceEvent, now: Instant, using dice: inout Dice) {
        outgrow(now)
        let former = counted.standing?.set
        switch event {
        case .ticked: tick(now)
        case .reached(let members):
            reached = members.filter { $0 != own }.sorted()
            let known = Set(reached + (counted.standing?.set.members ?? []))
            counted.keepViews(of: known)
            fence.keepContacts(of: known)
            for member in heardAt.keys where !known.contains(member) { heardAt[member] = nil }
        case .heard(let answer, let member): heard(answer, member, now)
        case .applied(let positions): fence.applied(positions)
        case .synced(let positions):
            synced.take(positions)
            if !retired.isEmpty {
                let goOn = Set(positions.map(\.process))
                retired.removeAll { goOn.contains($0) }
            }
            counted.ownSynced(synced.positions, now: now)
        case .retired(let position):
            synced.take([position])
            fence.applied([position])
            retired.removeAll { $0 == position.process }
            retired.append(position.process)
            counted.ownSynced([position], now: now)
        case .forgotten(let process):
            synced.forget(process)
            retired.removeAll { $0 == process }
            fence.forget(process)
            counted.forget(process)
        case .recorded(let record): counted.recorded(record, now: now)
        case .opens(let byOrder):
            guard mayOpen || byOrder, counted.standing == nil else { break }
            counted.open(now: now)
        case .contradicted(let position):
            counted.contradiction = counted.contradiction ?? .twoRecords(position)
        case .departed(let members): departed = Set(members).subtracting([own])
        case .leaveRequested: isLeaving = true
        case .recovers: counted.recover(now: now)
        }
        followSet(former, now)
        leaveFormerSets(now)
        finish(now, using: &dice)
    }

    /// Nobody is to be counted or forgotten, as far as this node can tell.
    private var isEverybodyCounted: Bool {
        guard let standing = counted.standing, standing.isSettled, counted.isCounted else {
            return false
        }
        return reached.allSatisfy(standing.set.contains)
    }

    private func isKnown(_ member: NodeID) -> Bool {
        reached.contains(member) || counted.standing?.set.contains(member) == true
    }

    private mutating func tick(_ now: Instant) {
        guard nextRound <= now else { return }
        let span = fence.settings.span
        guard isEverybodyCounted, window.isCurrent(at: now) else {
            nextRound = now + min(Self.hurry, Interval(nanoseconds: span.nanoseconds / 8))
            return askAll(now)
        }
        // One round may come to nothing, and the next is in time all the same.
        nextRound = now + Interval(nanoseconds: span.nanoseconds * 2 / 5)
        let isInTime = window.isCurrent(at: now + Interval(nanoseconds: span.nanoseconds / 2))
        guard isInTime, let needed = counted.standing?.set.members.count else { return askAll(now) }
        askSome(needed / 2, now)
    }

    /// How soon those are asked again who have to say something before anything goes on.
    private static let hurry = Interval.milliseconds(500)

    private mutating func askAll(_ now: Instant) {
        guard !reached.isEmpty else { return }
        news.questions.append(.init(members: reached, round: fence.beginRound(at: now)))
    }

    /// Asks as many as a majority needs beside this node, each in its turn; who does not answer is
    /// made up for by all in the next round.
    private mutating func askSome(_ count: Int, _ now: Instant) {
        guard count < reached.count else { return askAll(now) }
        let round = fence.beginRound(at: now)
        let members = (0..<count).map { reached[(turn + $0) % reached.count] }
        turn = (turn + count) % reached.count
        news.questions.append(.init(members: members.sorted(), round: round))
    }

    private mutating func heard(_ answer: FenceAnswer, _ member: NodeID, _ now: Instant) {
        guard member != own, isKnown(member) else { return }
        heardAt[member] = now
        goneByOrder.remove(member)
        youngUntil[member] = answer.view.isYoung ? fence.settings.fence.map { now + $0 } : nil
        guard counted.took(answer.view, holds: answer.holds, of: member, now: now) else { return }
        guard let round = answer.round else { return }
        fence.answered(round, by: member, named: answer.holds, now: now)
    }

    /// What follows from everything that has happened, in one order.
    mutating func finish(_ now: Instant, using dice: inout Dice) {
        if counted.standing != nil { mayOpen = false }
        if let join = counted.takeJoin() { news.records.append(join) }
        let demand = self.demand
        fence.update(demand, now: now)
        let isCurrent = window.isCurrent(at: now)
        counted.endAttempt(at: now)
        propose(now, using: &dice)
        if counted.isVoteDue {
            counted.vote(synced: votedPositions, isCurrent: isCurrent, issue: &news.records)
        }
        if let due = counted.voteIsRepeated(after: fence.settings.attemptPatience), due <= now {
            counted.repeatVote(synced: votedPositions, issue: &news.records)
        }
        // A vote that was just given is one more demand.
        if self.demand != demand { fence.update(self.demand, now: now) }
        askAnew(now)
    }

    /// What a vote names: what is held, and of what is retired, which all counted members had
    /// before, so much as there is room for, the last first.
    private var votedPositions: [StreamPosition] {
        let positions = synced.positions
        guard positions.count > CountRecord.holdsMax else { return positions }
        let retired = Set(self.retired)
        let held = positions.filter { !retired.contains($0.process) }
        let room = max(0, CountRecord.holdsMax - held.count)
        let rest = KnownPositions(positions)
        return held.prefix(CountRecord.holdsMax)
            + self.retired.suffix(room).map {
                StreamPosition(process: $0, count: rest.count(of: $0))
            }
    }

    /// Contacts from before a demand are of no use to it: who is fenced asks again at once, and so
    /// does everybody when the set is settled.
    private mutating func askAnew(_ now: Instant) {
        let demand = counted.demand
        guard demand != demanded else { return }
        let isSettled = demand?.settledAt != nil && demand?.settledAt != demanded?.settledAt
        demanded = demand
        if isSettled || (demand != nil && !window.isCurrent(at: now)) { nextRound = now }
    }
}

/// What happens to a ``FenceKeeper``; the shell tells it in the order in which it happened.
package enum FenceEvent: Hashable, Sendable {
    /// ``FenceKeeper/nextTick`` has come; coming earlier does no harm.
    case ticked
    /// All members that are connected.
    case reached([NodeID])
    /// A member's answer or confirmation, in the order of its connection.
    case heard(FenceAnswer, NodeID)
    /// No decision from here on misses what lies up to these positions.
    case applied([StreamPosition])
    /// They are synced here, and were applied before.
    case synced([StreamPosition])
    /// The log holds nothing more of the stream but how far it went; told at a start, too.
    case retired(StreamPosition)
    /// The log has forgotten even that.
    case forgotten(ProcessID)
    /// A record of the count was read: another's, or this node's own, which is then synced.
    case recorded(CountRecord)
    /// The node is to open a cluster, as ``Formation`` or the operator says; nothing happens to one
    /// that follows a count, or whose directory may hold what was served under one, unless that is
    /// the operator's order. May be told again and again.
    case opens(byOrder: Bool = false)
    /// The log holds one number with two contents.
    case contradicted(StreamPosition)
    /// Those of whom membership says that they have gone by their own word; all of them.
    case departed([NodeID])
    /// The node goes for good: it is to be forgotten by its own word.
    case leaveRequested
    /// The operator says that a line is to begin with this node, in the place of all others.
    case recovers
}

/// What a member says when asked, or of itself.
package struct FenceAnswer: Hashable, Sendable {
    /// The number in the question; nil if nobody asked.
    package var round: UInt64?
    /// What it has synced; the fence closes nobody who has applied all that.
    package var holds: [StreamPosition]
    /// Made together with ``holds``, after the question was read.
    package var view: CountView

    package init(round: UInt64?, holds: [StreamPosition], view: CountView) {
        self.round = round
        self.holds = holds
        self.view = view
    }
}

/// What a ``FenceKeeper`` wants done.
package struct FenceNews: Hashable, Sendable {
    /// These members are to be asked which invalidations they have; the frames may wait, for the
    /// time runs already.
    package struct Question: Hashable, Sendable {
        package var members: [NodeID]
        package var round: UInt64
    }

    package var questions: [Question] = []
    /// To be appended to this process's stream; when one is synced
    /// ``FenceEvent/recorded(_:)`` tells so, and it is pushed no earlier.
    package var records: [CountRecord] = []

    package init() {}
}
