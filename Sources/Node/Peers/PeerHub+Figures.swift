import Cluster
import Telemetry

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
