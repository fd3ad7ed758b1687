import Cluster
import Ground
import HTTPRules
import Logging
import Platform
import Telemetry

/// The log lines about the cluster's members and the connections with them; failures are repeated
/// only after a while.
///
/// Confined to the hub's loop.
struct PeerLog {
    private let logger: Logger
    private var limiter = PeerWarningLimiter()

    /// Creates a log without any line.
    init(_ logger: Logger) {
        self.logger = logger
    }

    /// Logs a warning about `peer`, unless the last one about it is recent and has the same reason
    /// `why`.
    private mutating func warn(
        _ message: Logger.Message, _ metadata: Logger.Metadata, about peer: String, why: String
    ) {
        guard limiter.shouldLog(peer, why, now: SystemClock.now()) else { return }
        logger.warning(message, metadata: metadata)
    }

    /// Logs a failed connection or look-up.
    mutating func connectionFailed(_ remote: String, _ why: String) {
        warn(
            "connection to a peer failed", ["peer": "\(remote)", "why": "\(why)"], about: remote,
            why: why)
    }

    /// Notes that there is a connection, so that its next failure is logged.
    mutating func connectionOpened(_ remote: String) {
        limiter.clear(remote)
    }

    /// Logs that a member has other settings for a site.
    mutating func siteSettingsDiffer(from peer: NodeID, on site: String) {
        warn(
            "a peer has different settings for a site: each node fetches from the origin",
            ["member": "\(peer)", "site": "\(site)"], about: "\(peer) \(site)",
            why: "settings of \(site)")
    }

    /// Logs a rejected response of a member.
    mutating func replyRejected(_ peer: NodeID, _ fault: StoredHeadFault) {
        warn(
            "response from a peer rejected", ["member": "\(peer)", "why": "\(fault)"],
            about: "\(peer)", why: "\(fault)")
    }

    /// Logs that a member's weight is limited, if it exceeds `limit`.
    mutating func memberWeighed(_ member: Member, limit: UInt16) {
        guard member.weight > limit else { return }
        warn(
            "a member's weight is limited",
            [
                "member": "\(member.id)", "weight": "\(member.weight)", "counted": "\(limit)",
                "setting": "ring-weight-limit",
            ], about: "\(member.id)", why: "weight \(member.weight)")
    }

    /// Logs another member's state, if that or its process has changed.
    func memberChanged(_ record: MemberRecord, from before: MemberRecord?) {
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

    /// Logs that a member that is dead or has left is forgotten.
    func memberForgotten(_ member: Member) {
        logger.debug("member forgotten", metadata: ["member": "\(member.id)"])
    }

    /// Logs that a member is refused because there are `membersMax` already.
    func memberRefused(_ member: Member, membersMax: Int) {
        logger.error(
            "member refused: the cluster is full",
            metadata: [
                "member": "\(member.id)", "address": "\(member.address)",
                "members_max": "\(membersMax)",
            ])
    }

    /// Logs the seeds that do not respond while the node looks for its cluster.
    func clusterNotFound(missing: [String]) {
        logger.warning(
            "looking for the cluster",
            metadata: [
                "missing": .array(missing.map { .string($0) }),
                "until_then": "every response is revalidated at its origin",
                "if_this_node_is_the_cluster": "nuthatch members bootstrap",
            ])
    }

    /// Logs why this process ends as a member.
    func servingRefused(_ why: MembershipEffect.ServingRefusal, own: NodeID) {
        let (message, advice): (Logger.Message, String) =
            switch why {
            case .duplicateIdentity:
                (
                    "another live process has this node's id; this process does not serve",
                    "give each node its own directory"
                )
            case .restoredCopy:
                (
                    "the data directory is older than the state this node has confirmed",
                    "restart it: it joins as a new member and revalidates each entry once"
                )
            }
        logger.critical(message, metadata: ["node": "\(own)", "advice": "\(advice)"])
    }

    /// Logs the members that have not acknowledged that this node leaves, if there are any.
    func leavingUnacknowledged(by members: [NodeID]) {
        guard !members.isEmpty else { return }
        logger.notice(
            "left the cluster; some members did not acknowledge",
            metadata: ["members": .array(members.map { .string("\($0)") })])
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

    /// Returns true, and remembers the line, if one about `remote` with the reason `why` is to be
    /// logged now.
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

extension Metric {
    /// Returns the metric of a change of a member's record.
    ///
    /// - Parameters:
    ///   - record: the record.
    ///   - before: the record before; `nil` for a new member.
    ///   - own: the id of this node.
    /// - Returns: the metric; `nil` if the change is not counted.
    static func change(of record: MemberRecord, from before: MemberRecord?, own: NodeID) -> Metric?
    {
        guard record.member.id != own else {
            // A change of this node's own state is announced unasked; anything else refutes a
            // suspicion.
            return record.state == before?.state && record.member == before?.member
                ? .refutations : nil
        }
        guard record.state != before?.state else { return nil }
        return switch record.state {
        case .alive: .memberChangesToAlive
        case .suspected: .memberChangesToSuspected
        case .dead: .memberChangesToDead
        case .left: .memberChangesToLeft
        }
    }

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
