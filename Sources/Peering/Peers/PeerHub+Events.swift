import Cluster
import Ground
import HTTPRules
import Logging
import NIOCore
import NIOPosix
import Origin
import Platform
import Synchronization
import Telemetry
import Wire

extension PeerHub {
    /// Handles an event and performs its effects.
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

    /// Schedules the next tick of the membership.
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
        case .dial(let address): dial(address)
        case .close(let id, let reason):
            connections.removeValue(forKey: id)?.close(Goodbye(reason))
        case .send(let message, let id):
            guard let connection = connections[id] else { return }
            counters.add(.sent(message))
            connection.send(Gossip(message))
        case .useConnection, .dropConnection: break
        case .memberChanged(let record, let before):
            countStateChange(record, before)
            log(record, before)
            warnIfWeightCapped(of: record.member)
            guard record.state == .suspected else { return }
            membership.connection(to: record.member.id).flatMap { connections[$0] }?.peerSuspected()
        case .forget(let record):
            logger.debug("member forgotten", metadata: ["member": "\(record.member.id)"])
        case .refuseMember(let member):
            logger.error(
                "member refused: the cluster is full",
                metadata: [
                    "member": "\(member.id)", "address": "\(member.address)",
                    "members_max": "\(membership.settings.membersMax)",
                ])
        case .refuseToServe(let why): refuseToServe(why)
        case .finishLeaving(let unreached):
            if !unreached.isEmpty {
                logger.notice(
                    "left the cluster; some members did not acknowledge",
                    metadata: ["members": .array(unreached.map { .string("\($0)") })])
            }
            leavePromise.take()?.succeed()
        }
    }

    /// Publishes a new snapshot if members or connections have changed.
    private func publish(_ effects: [MembershipEffect]) {
        let isChanged = effects.contains { effect in
            switch effect {
            case .memberChanged, .forget, .useConnection, .dropConnection: true
            default: false
            }
        }
        guard isChanged else { return }
        let view = MemberView(membership, connections)
        published.withLock { $0 = view }
        host.purges?.membershipChanged(view)
        handoffSender.updateConnections(view.connections)
        ringUpdater.update(view.records)
    }

    /// Logs a change of a member's state.
    private func log(_ record: MemberRecord, _ before: MemberRecord?) {
        guard record.member.id != membership.own.member.id else { return }
        let isSame =
            record.state == before?.state && record.member.process == before?.member.process
        guard !isSame else { return }
        let metadata: Logger.Metadata = [
            "member": "\(record.member.id)", "address": "\(record.member.address)",
        ]
        switch record.state {
        case .alive: logger.info("member is alive", metadata: metadata)
        case .suspected: logger.notice("member does not respond; suspected", metadata: metadata)
        case .dead: logger.warning("member is dead", metadata: metadata)
        case .left: logger.info("member has left", metadata: metadata)
        }
    }

    /// Logs, once per member, that its weight exceeds the limit.
    func warnIfWeightCapped(of member: Member) {
        let most = ringUpdater.weightMax
        guard member.weight > most,
            warningLimiter.shouldLog(
                "\(member.id)", "weight \(member.weight)", now: SystemClock.now())
        else { return }
        logger.warning(
            "a member's weight is limited",
            metadata: [
                "member": "\(member.id)", "weight": "\(member.weight)", "counted": "\(most)",
                "setting": "ring-weight-limit",
            ])
    }

    /// Logs a failed connection, unless it was logged lately.
    func logConnectionFailure(of remote: String, _ why: String) {
        guard warningLimiter.shouldLog(remote, why, now: SystemClock.now()) else { return }
        logger.warning(
            "connection to a peer failed", metadata: ["peer": "\(remote)", "why": "\(why)"])
    }
}
