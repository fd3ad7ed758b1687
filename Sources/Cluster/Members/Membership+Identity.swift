import Ground

/// Two processes with one node id.
///
/// A node's newer process takes the earlier one's place when that no longer answers; while it
/// answers, the newcomer is refused by whoever is connected with both. A node restored from an
/// older copy of its directory learns from the first tables that it was started more often than
/// the directory knows: it has promised what it does not have, and is not that member any more.
extension Membership {
    /// A live twin may be raised above once by a young process, in case of a stale record, and so
    /// often by an older one; after that one of them gives way.
    private static let contestsMax = 8

    /// True if the record is of another process than the one that this node is connected with.
    func contradictsConnection(_ record: MemberRecord, _ held: MemberRecord) -> Bool {
        let process = record.member.process
        return process != held.member.process && record.supersedes(held)
            && mesh.process(of: held.member.id) == held.member.process
    }

    /// Asks the earlier process whether it lives.
    mutating func check(
        _ newcomer: Identities.Newcomer, against held: MemberRecord, _ turn: inout Turn
    ) {
        let id = held.member.id
        if let check = identities.checks[id] {
            if newcomer.connection == nil {
                // One who comes himself is better evidence than one who is talked of.
                if check.newcomer.connection == nil,
                    newcomer.record.supersedes(check.newcomer.record)
                {
                    identities.checks[id]?.newcomer = newcomer
                }
                return
            }
            if let earlier = check.newcomer.connection {
                turn.effects.append(.close(earlier, .redundant))
            }
            identities.checks[id]?.newcomer = newcomer
            return
        }
        guard let line = mesh.connection(to: id) else { return }
        let sequence = nextSequence()
        identities.checks[id] = Identities.Check(
            newcomer: newcomer, earlier: held.member.process, sequence: sequence,
            endsAt: turn.now + health.scaled(settings.probeTimeout))
        send(.ping(sequence: sequence, news: []), on: line, &turn)
    }

    /// The earlier process lives: the newcomer is refused, and what is said of it is told to the
    /// earlier one, which then speaks up.
    mutating func identityAnswered(_ sequence: UInt32, _ turn: inout Turn) {
        for (id, check) in zip(identities.checks.keys, identities.checks.values)
        where check.sequence == sequence {
            identities.checks[id] = nil
            if let newcomer = check.newcomer.connection {
                turn.effects.append(.close(newcomer, .duplicateIdentity))
            } else if let line = mesh.connection(to: id) {
                send(.news([check.newcomer.record]), on: line, &turn)
            }
        }
    }

    /// The earlier process did not answer in time: the newcomer takes its place.
    mutating func endIdentityChecks(_ turn: inout Turn) {
        for (id, check) in zip(identities.checks.keys, identities.checks.values)
        where check.endsAt <= turn.now {
            identities.checks[id] = nil
            if mesh.process(of: id) == check.earlier { closeAll(with: id, .superseded, &turn) }
            let newcomer = check.newcomer
            if let connection = newcomer.connection {
                admit(connection, dialled: newcomer.dialled, newcomer.record, &turn)
            } else {
                learn(newcomer.record, .hearsay, &turn)
            }
        }
        for (id, twin) in zip(identities.twins.keys, identities.twins.values)
        where twin.endsAt <= turn.now {
            part(from: twin, on: id, &turn)
        }
        for (id, endsAt) in zip(identities.outdated.keys, identities.outdated.values)
        where endsAt <= turn.now {
            identities.outdated[id] = nil
            turn.effects.append(.close(id, .redundant))
        }
    }

    /// A hello with this node's own id.
    mutating func openedToOwnID(
        _ id: ConnectionID, dialled: PeerAddress?, _ record: MemberRecord, _ turn: inout Turn
    ) {
        if let dialled { plan.openedToSelf(dialled, at: turn.now) }
        guard record.member.process != own.member.process else {
            turn.effects.append(.close(id, .selfDial))
            return
        }
        let isSenior = hasTable || turn.now - startedAt > settings.youth
        let process = record.member.process
        guard !isSenior || isLater(than: process) else {
            turn.effects.append(.close(id, .duplicateIdentity))
            return
        }
        // Of two seniors the other speaks first, of two newcomers nobody does; a senior speaks
        // before a newcomer's time is over.
        let patience = settings.twinPatience
        let endsAt = turn.now + (isSenior ? patience : patience + patience)
        identities.twins[id] = Identities.Twin(
            process: process, isSenior: isSenior, endsAt: endsAt)
    }

    /// The twin has not said that this process is the later one.
    private mutating func part(
        from twin: Identities.Twin, on id: ConnectionID, _ turn: inout Turn
    ) {
        identities.twins[id] = nil
        guard !twin.isSenior, isLater(than: twin.process) else {
            turn.effects.append(.close(id, .duplicateIdentity))
            return
        }
        turn.effects.append(.close(id, .redundant))
        refuseToServe(.twin, &turn)
    }

    /// Another process of this node is believed in.
    ///
    /// One that started in this boot epoch or after it shows a process that has just started that
    /// its directory is older than what the node has promised to keep.
    mutating func heardOfTwin(_ record: MemberRecord, _ turn: inout Turn) {
        let isJoining = !own.member.role.contains(.isCaughtUp) || !hasTable
        if isJoining, record.incarnation.epoch >= own.incarnation.epoch {
            return refuseToServe(.copy, &turn)
        }
        guard record.supersedes(own) else { return }
        if record.state.isLive {
            identities.contests += 1
            let isYoung = turn.now - startedAt < settings.youth
            if isYoung, identities.contests > 2 { return refuseToServe(.twin, &turn) }
            if identities.contests > Self.contestsMax, isLater(than: record.member.process) {
                return refuseToServe(.twin, &turn)
            }
        }
        speakUp(above: record.incarnation, &turn)
    }

    /// Nobody can tell who came first; both must choose the same.
    private func isLater(than process: ProcessID) -> Bool {
        let mine = own.member.process
        return (mine.high, mine.low) > (process.high, process.low)
    }

    mutating func refuseToServe(_ why: MembershipEffect.Refusal, _ turn: inout Turn) {
        phase = .over
        for id in mesh.connections.keys { turn.effects.append(.close(id, .leaving)) }
        turn.effects.append(.refuseToServe(why))
    }
}
