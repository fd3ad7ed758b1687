package import Ground

/// Who is here, and what they confirm.
extension InvalidationLog {
    /// All members that have neither left nor been forgotten, this node included or not, and some
    /// that have.
    package mutating func membersChanged(
        _ members: [LogMember], gone: [NodeID], now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        company.follow(members, gone: gone, now: now)
        for node in gone where company.isGone(node) { ahead[node] = nil }
        review(now, &effects)
        // Of those that vanished, and whom nobody names, nothing is kept; but what was durable at a
        // majority that they were part of stays so.
        for node in confirmations.confirmers
        where node != self.node && lines[node] == nil && !company.isKnown(node)
            && !company.hasCounted(node)
        {
            confirmations.remove(node)
            ahead[node] = nil
        }
    }

    /// This is now the connection on which this node and `node` speak: both tell all they have, at
    /// once, and with the first question, which may overtake that.
    package mutating func connected(
        _ node: NodeID, on connection: ConnectionID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        guard lines[node]?.connection != connection else { return }
        // It tells all it has ahead of its first question here; what it told before may be of
        // streams that nobody holds any more.
        ahead[node] = nil
        let reaches = reaches
        lines[node] = PeerLine(
            connection: connection, toldCount: reaches.isEmpty ? recent.count : nil)
        if !reaches.isEmpty { effects.append(.send(.told(reaches), to: [node])) }
        news.confirmations.append((positions, [node]))
        company.review(connected: lines.keys, now: now)
        settle(&effects)
    }

    /// There is no connection with `node` any more.
    package mutating func disconnected(
        _ node: NodeID, now: Instant, effects: inout [InvalidationEffect]
    ) {
        lines[node] = nil
        company.review(connected: lines.keys, now: now)
        settle(&effects)
    }

    /// `node` says what it has synced, and whom it has for members.
    package mutating func confirmed(
        _ positions: [StreamPosition], members: [NodeID], by node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        heard(positions, from: node, now: now, effects: &effects)
        guard !company.isGone(node) else { return }
        let bounded = Array(members.prefix(settings.streamsMax))
        let namesFewer = confirmations.add(positions, members: bounded, by: node, at: now)
        let namesMore = bounded.contains { !company.isKnown($0) && !company.isGone($0) }
        if namesFewer || namesMore {
            review(now, &effects)
        } else {
            settle(&effects)
        }
    }

    mutating func review(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        company.review(
            named: confirmations.named(by: company.recorded), connected: lines.keys, now: now)
        settle(&effects)
    }

    /// Says how far no receipt of this node's records is pending any more.
    mutating func settle(_ effects: inout [InvalidationEffect]) {
        guard let place = streams.place(of: process) else { return }
        var count = streams[place].synced.prefix
        guard count > settledCount else { return }
        for node in company.known where node != self.node && lines[node] != nil {
            count = min(count, confirmations.count(of: process, by: node))
        }
        guard count > settledCount else { return }
        settledCount = count
        effects.append(.settled(upTo: count))
    }

    /// How far the record has come; nil if it is not held.
    package func receipt(of name: RecordName) -> Receipt? {
        guard let place = streams.place(of: name.stream),
            let slot = streams[place].shelf.slot(name.number),
            let record = streams[place].record(name.number)
        else { return nil }
        let lines = company.known.map { node in
            Receipt.Line(node, standing(of: node, name, since: slot.heldSince))
        }
        let majorityAt = company.majorityInstant { confirmations.instant(of: name, by: $0) }
        return Receipt(
            record: record, heldSince: slot.heldSince, lines: lines, majorityAt: majorityAt,
            boundedAt: majorityAt.map { $0 + settings.fence })
    }

    private func standing(
        of node: NodeID, _ name: RecordName, since: Instant
    ) -> Receipt.Standing {
        if let instant = confirmations.instant(of: name, by: node) {
            return .confirmed(elapsed: max(.zero, instant - since))
        }
        return company.awaySince[node].map { .unreachable(since: $0) } ?? .pending
    }
}
