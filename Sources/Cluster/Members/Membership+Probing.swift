import Ground

/// Asking for signs of life.
extension Membership {
    /// Whatever is due of the probe under way, or of the next one.
    mutating func continueProbe(_ turn: inout Turn) {
        if let probe = probing.probe {
            if probe.endsAt <= turn.now {
                fail(probe, &turn)
            } else if let askAt = probe.askAt, askAt <= turn.now {
                askOthers(&turn)
            }
        }
        guard probing.probe == nil, probing.nextAt <= turn.now else { return }
        let interval = health.scaled(settings.probeInterval)
        probing.nextAt = turn.now + interval
        guard let target = probing.takeNext(roster, &turn.dice) else { return }
        start(target, endsAt: turn.now + interval, &turn)
    }

    private mutating func start(_ target: NodeID, endsAt: Instant, _ turn: inout Turn) {
        let sequence = nextSequence()
        probing.probe = Probing.Probe(target: target, sequence: sequence, endsAt: endsAt)
        guard let line = mesh.connection(to: target) else { return askOthers(&turn) }
        probing.probe?.line = line
        probing.probe?.askAt = turn.now + health.scaled(settings.probeTimeout)
        send(.ping(sequence: sequence, news: riders(first: target)), on: line, &turn)
    }

    /// The target has not answered, or is not connected: some others ask it, and it is asked on
    /// every other connection with it.
    private mutating func askOthers(_ turn: inout Turn) {
        guard let probe = probing.probe else { return }
        let others = mesh.peers.filter { $0 != probe.target && roster[$0]?.state == .alive }
            .shuffled(using: &turn.dice).prefix(settings.indirectProbes)
        probing.probe?.askAt = nil
        probing.probe?.asked = others.count
        for line in mesh.all(with: probe.target) where line != probe.line {
            send(.ping(sequence: probe.sequence, news: []), on: line, &turn)
        }
        for other in others {
            guard let line = mesh.connection(to: other) else { continue }
            let question = GossipMessage.pingRequest(
                sequence: probe.sequence, target: probe.target, news: riders())
            send(question, on: line, &turn)
        }
    }

    private mutating func fail(_ probe: Probing.Probe, _ turn: inout Turn) {
        probing.probe = nil
        // Whoever was asked and says neither yes nor no does not reach this node either.
        health.worsened(by: probe.asked == 0 ? 1 : max(0, probe.asked - probe.nacks))
        accuse(probe.target, &turn)
    }
}
