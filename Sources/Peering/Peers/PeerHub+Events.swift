import Cluster
package import Ground
package import HTTPRules
import NIOCore
import Platform
import Telemetry
import Synchronization

extension PeerHub {
    /// Handles an event of the membership and performs its effects; ignored after ``stop()``.
    func handle(_ event: MembershipEvent) {
        guard !isStopped else { return }
        if announcedRule != nil { joinWatch.observe(event) }
        var effects: [MembershipEffect] = []
        membership.handle(event, now: SystemClock.now(), using: &dice, effects: &effects)
        for effect in effects { run(effect) }
        publish(effects)
        schedule()
        advanceJoin()
    }

    /// Replaces the timer of the membership's next tick.
    func schedule() {
        timer?.cancel()
        guard !isStopped, membership.nextTick != .distantFuture else { return }
        let wait = max(.zero, membership.nextTick - SystemClock.now())
        timer = loop.scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            self?.handle(.ticked)
        }
    }

    /// Performs an effect of the membership.
    private func run(_ effect: MembershipEffect) {
        switch effect {
        case .dial(let address): dialer.dial(address, for: self)
        case .close(let id, let reason):
            connections.removeValue(forKey: id)?.close(Goodbye(reason))
        case .send(let message, let id):
            guard let connection = connections[id] else { return }
            counters.add(.sent(message))
            connection.send(Gossip(message))
        case .useConnection, .dropConnection: break
        case .memberChanged(let record, let before):
            if let metric = Metric.change(of: record, from: before, own: ownID) {
                counters.add(metric)
            }
            if record.member.id != ownID { log.memberChanged(record, from: before) }
            log.memberWeighed(record.member, limit: ringUpdater.weightMax)
            guard record.state == .suspected else { return }
            membership.connection(to: record.member.id).flatMap { connections[$0] }?.peerSuspected()
        case .forget(let record): log.memberForgotten(record.member)
        case .refuseMember(let member):
            log.memberRefused(member, membersMax: membership.settings.membersMax)
        case .refuseToServe(let why): refuseToServe(why)
        case .finishLeaving(let unreached):
            log.leavingUnacknowledged(by: unreached)
            leavePromise.take()?.succeed()
        }
    }

    /// Publishes a new ``view`` if members or connections have changed, also to the coordinator of
    /// invalidations, the handoff and the ring.
    private func publish(_ effects: [MembershipEffect]) {
        let isChanged = effects.contains { effect in
            switch effect {
            case .memberChanged, .forget, .useConnection, .dropConnection: true
            default: false
            }
        }
        guard isChanged else { return }
        let (before, view) = (self.view, MemberView(membership, connections))
        published.withLock { $0 = view }
        host.purges?.membershipChanged(view)
        handoffSender.updateConnections(view.connections)
        ringUpdater.update(view.records)
        reporter.viewChanged(from: before, to: view)
    }

    /// Records the summary of the peer on a connection; ignored if that has been closed.
    func summaryReceived(_ summary: MemberSummary, on id: PeerConnectionID) {
        loop.execute { [self] in
            guard let peer = connections[id]?.peer else { return }
            reporter.received(summary, from: peer, in: view)
        }
    }

    /// Counts and logs that a member has other settings for a site, so that both fetch from the
    /// origin.
    package func siteSettingsDiffer(from peer: NodeID, on site: String) {
        counters.add(.peerPoliciesDiffer)
        loop.execute { [self] in log.siteSettingsDiffer(from: peer, on: site) }
    }

    /// Counts and logs a rejected response of a member.
    package func replyRejected(_ peer: NodeID, _ fault: StoredHeadFault) {
        counters.add(.headsRefusedFromPeers)
        loop.execute { [self] in log.replyRejected(peer, fault) }
    }
}
