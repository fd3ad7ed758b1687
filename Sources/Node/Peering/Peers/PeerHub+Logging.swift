import Cluster
import Ground
import HTTPRules
import Logging
import NIOCore
import Telemetry

/// What a node says of its peers, once and not with every answer.
extension PeerHub {
    /// A member has other settings for a site than this node: each asks the origin for itself.
    func siteSettingsDiffer(from peer: NodeID, on site: String) {
        counters.add(.peerPoliciesDiffer)
        loop.execute { [self] in
            let why = "settings of \(site)"
            guard warningLimiter.shouldLog("\(peer) \(site)", why, now: SystemClock.now()) else {
                return
            }
            logger.warning(
                "a peer has other settings for a site: each node asks the origin for itself",
                metadata: ["member": "\(peer)", "site": "\(site)"])
        }
    }

    /// A member gave an answer that cannot be one; nobody gets it.
    func replyRejected(_ peer: NodeID, _ fault: StoredHeadFault) {
        counters.add(.headsRefusedFromPeers)
        loop.execute { [self] in
            guard warningLimiter.shouldLog("\(peer)", "\(fault)", now: SystemClock.now()) else {
                return
            }
            logger.warning(
                "an answer of a peer is refused",
                metadata: ["member": "\(peer)", "why": "\(fault)"])
        }
    }
}

/// What is counted of what members say to each other.
extension PeerHub {
    /// Something else is believed of a member.
    func countStateChange(_ record: MemberRecord, _ before: MemberRecord?) {
        guard record.member.id != ownID else {
            // Whoever changes its part says so unasked.
            if record.state == before?.state, record.member == before?.member {
                counters.add(.refutations)
            }
            return
        }
        guard record.state != before?.state else { return }
        switch record.state {
        case .alive: counters.add(.memberChangesToAlive)
        case .suspected: counters.add(.memberChangesToSuspected)
        case .dead: counters.add(.memberChangesToDead)
        case .left: counters.add(.memberChangesToLeft)
        }
    }
}

extension Metric {
    static func sent(_ message: GossipMessage) -> Metric {
        switch message {
        case .ping: .gossipPingsSent
        case .ack: .gossipAcksSent
        case .pingRequest: .gossipPingRequestsSent
        case .nack: .gossipNacksSent
        case .updates: .gossipUpdatesSent
        case .table: .gossipTablesSent
        }
    }

    static func received(_ message: GossipMessage) -> Metric {
        switch message {
        case .ping: .gossipPingsReceived
        case .ack: .gossipAcksReceived
        case .pingRequest: .gossipPingRequestsReceived
        case .nack: .gossipNacksReceived
        case .updates: .gossipUpdatesReceived
        case .table: .gossipTablesReceived
        }
    }
}

/// What was said of peers that no connection could be made with, so that it is said once and not
/// with every try.
struct PeerWarningLimiter {
    private var logged: [String: (why: String, at: Instant)] = [:]

    /// The same of the same peer is said again after so long.
    private static let interval = Interval.seconds(600)
    /// Peers remembered at most; when there are more, all is said again.
    private static let peersMax = 1_024

    /// True if this is to be said.
    mutating func shouldLog(_ remote: String, _ why: String, now: Instant) -> Bool {
        if let last = logged[remote], last.why == why, now - last.at < Self.interval {
            return false
        }
        if logged.count >= Self.peersMax { logged = [:] }
        logged[remote] = (why, now)
        return true
    }

    /// There is a connection with it.
    mutating func clear(_ remote: String) {
        logged[remote] = nil
    }
}
