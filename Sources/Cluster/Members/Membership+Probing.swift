import Ground

/// Asking for signs of life.
extension Membership {
    /// Whatever is due of the probe under way, or of the next one.
    mutating func continueProbe(_ turn: inout StepContext) {
        if let probe = probes.probe {
            if probe.deadline <= turn.now {
                probeFailed(probe, &turn)
            } else if let askAt = probe.indirectAt, askAt <= turn.now {
                sendIndirectProbes(&turn)
            }
        }
        guard probes.probe == nil, probes.nextProbeAt <= turn.now else { return }
        let interval = health.scaled(settings.probeInterval)
        probes.nextProbeAt = turn.now + interval
        guard let target = probes.takeNext(members, &turn.dice) else { return }
        startProbe(target, endsAt: turn.now + interval, &turn)
    }

    private mutating func startProbe(_ target: NodeID, endsAt: Instant, _ turn: inout StepContext) {
        let sequence = nextSequence()
        probes.probe = ProbeSchedule.Probe(target: target, sequence: sequence, deadline: endsAt)
        guard let line = mesh.connection(to: target) else { return sendIndirectProbes(&turn) }
        probes.probe?.connection = line
        probes.probe?.indirectAt = turn.now + health.scaled(settings.probeTimeout)
        send(.ping(sequence: sequence, updates: piggybackedRecords(first: target)), on: line, &turn)
    }

    /// The target has not answered, or is not connected: some others ask it, and it is asked on
    /// every other connection with it.
    private mutating func sendIndirectProbes(_ turn: inout StepContext) {
        guard let probe = probes.probe else { return }
        let others = mesh.peers.filter { $0 != probe.target && members[$0]?.state == .alive }
            .shuffled(using: &turn.dice).prefix(settings.indirectProbes)
        probes.probe?.indirectAt = nil
        probes.probe?.indirectCount = others.count
        for line in mesh.all(with: probe.target) where line != probe.connection {
            send(.ping(sequence: probe.sequence, updates: []), on: line, &turn)
        }
        for other in others {
            guard let line = mesh.connection(to: other) else { continue }
            let question = GossipMessage.pingRequest(
                sequence: probe.sequence, target: probe.target, updates: piggybackedRecords())
            send(question, on: line, &turn)
        }
    }

    private mutating func probeFailed(_ probe: ProbeSchedule.Probe, _ turn: inout StepContext) {
        probes.probe = nil
        // Whoever was asked and says neither yes nor no does not reach this node either.
        health.worsened(
            by: probe.indirectCount == 0 ? 1 : max(0, probe.indirectCount - probe.nacks))
        raiseSuspicion(probe.target, &turn)
    }
}
