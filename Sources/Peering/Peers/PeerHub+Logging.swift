import Cluster
package import Ground
package import HTTPRules
import Logging
import NIOCore
import Platform
import Telemetry

/// Log lines about peers, each repeated only after a while.
extension PeerHub {
    /// Counts and logs that a member has other settings for a site, so that both fetch from the
    /// origin.
    package func siteSettingsDiffer(from peer: NodeID, on site: String) {
        counters.add(.peerPoliciesDiffer)
        loop.execute { [self] in
            let why = "settings of \(site)"
            guard warningLimiter.shouldLog("\(peer) \(site)", why, now: SystemClock.now()) else {
                return
            }
            logger.warning(
                "a peer has different settings for a site: each node fetches from the origin",
                metadata: ["member": "\(peer)", "site": "\(site)"])
        }
    }

    /// Counts and logs a rejected response of a member.
    package func replyRejected(_ peer: NodeID, _ fault: StoredHeadFault) {
        counters.add(.headsRefusedFromPeers)
        loop.execute { [self] in
            guard warningLimiter.shouldLog("\(peer)", "\(fault)", now: SystemClock.now()) else {
                return
            }
            logger.warning(
                "response from a peer rejected",
                metadata: ["member": "\(peer)", "why": "\(fault)"])
        }
    }
}

/// The metrics of the membership.
extension PeerHub {
    /// Counts a change of a member's state; `before` is `nil` for a new member.
    func countStateChange(_ record: MemberRecord, _ before: MemberRecord?) {
        guard record.member.id != ownID else {
            // A change of this node's own state is announced unasked; anything else refutes a
            // suspicion.
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
    /// Returns the metric of sent messages of this kind.
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

    /// Returns the metric of received messages of this kind.
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

/// The rate limit of log lines about peers, so that a failure is logged once and not at every
/// attempt.
struct PeerWarningLimiter {
    /// The last line per peer: its reason and time.
    private var logged: [String: (why: String, at: Instant)] = [:]

    /// The time after which the same line about the same peer is logged again.
    private static let interval = Interval.seconds(600)
    /// The largest number of remembered peers; beyond it, all are forgotten and logged again.
    private static let peersMax = 1_024

    /// Returns true if a line about `remote` with the reason `why` is to be logged now.
    mutating func shouldLog(_ remote: String, _ why: String, now: Instant) -> Bool {
        if let last = logged[remote], last.why == why, now - last.at < Self.interval {
            return false
        }
        if logged.count >= Self.peersMax { logged = [:] }
        logged[remote] = (why, now)
        return true
    }

    /// Forgets a peer, because there is a connection with it.
    mutating func clear(_ remote: String) {
        logged[remote] = nil
    }
}
