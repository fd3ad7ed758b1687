package import Ground

/// Who is here, and what they confirm.
extension InvalidationLog {
    /// Membership has these.
    package mutating func membersChanged(
        _ named: [ExchangeMember], now: Instant, effects: inout [InvalidationEffect]
    ) {
        members.follow(named, now: now)
        reviewMembers(now, &effects)
    }

    /// These count for majorities from now on, by id.
    package mutating func counted(
        _ counted: [NodeID], now: Instant, effects: inout [InvalidationEffect]
    ) {
        if members.count(counted, now: now) { reviewMembers(now, &effects) }
    }

    /// Of those that have left or vanished, and whom nobody names, nothing is kept; but what was
    /// durable at a majority that they were part of stays so.
    mutating func reviewMembers(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        members.review(now: now)
        for node in members.left where members.hasLeft(node) { ahead[node] = nil }
        review(now, &effects)
        for node in confirmations.confirmers
        where node != self.node && lines[node] == nil && !members.isKnown(node)
            && !members.hasCounted(node)
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
        if members.meet(node) { reviewMembers(now, &effects) }
        guard lines[node]?.connection != connection else { return }
        // It tells all it has ahead of its first question here; what it told before may be of
        // streams that nobody holds any more.
        ahead[node] = nil
        let reaches = reaches
        lines[node] = PeerLine(
            connection: connection, toldCount: reaches.isEmpty ? recent.count : nil)
        if !reaches.isEmpty { effects.append(.send(.told(reaches), to: [node])) }
        news.confirmations.append((positions, [node]))
        members.review(connected: lines.keys, now: now)
        settle(&effects)
    }

    /// There is no connection with `node` any more.
    package mutating func disconnected(
        _ node: NodeID, now: Instant, effects: inout [InvalidationEffect]
    ) {
        lines[node] = nil
        members.review(connected: lines.keys, now: now)
        settle(&effects)
    }

    /// `node` says what it has synced, and whom it has for members.
    package mutating func confirmed(
        _ positions: [StreamPosition], members: [NodeID], by node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        heard(positions, from: node, now: now, effects: &effects)
        guard !self.members.hasLeft(node) else { return }
        let bounded = Array(members.prefix(settings.streamsMax))
        let namesFewer = confirmations.add(positions, members: bounded, by: node, at: now)
        let namesMore = bounded.contains { !self.members.isKnown($0) && !self.members.hasLeft($0) }
        if namesFewer || namesMore {
            review(now, &effects)
        } else {
            settle(&effects)
        }
    }

    mutating func review(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        members.review(
            named: confirmations.named(by: members.recorded), connected: lines.keys, now: now)
        settle(&effects)
    }

    /// Says how far no receipt of this node's records is pending any more.
    mutating func settle(_ effects: inout [InvalidationEffect]) {
        guard let place = streams.place(of: process) else { return }
        var count = streams[place].synced.prefix
        guard count > settledCount else { return }
        for node in members.known where node != self.node && lines[node] != nil {
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
        let lines = members.known.map { node in
            Receipt.Line(node, standing(of: node, name, since: slot.heldSince))
        }
        let majorityAt = members.majorityInstant { confirmations.instant(of: name, by: $0) }
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
        return members.unreachableSince[node].map { .unreachable(since: $0) } ?? .pending
    }
}
