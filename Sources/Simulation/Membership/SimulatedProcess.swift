package import Cluster
package import Ground

/// One run of a simulated node.
package struct SimulatedProcess: Sendable {
    package enum State: Hashable, Sendable {
        case running
        /// Nothing is read and no tick comes (SIGSTOP); what arrives waits.
        case paused
        /// It has left in good order, was killed or its machine has gone.
        case ended
        /// It refused to serve.
        case refusedToServe
    }

    package let host: Int
    package var membership: Membership
    package internal(set) var state = State.running
    var dice: SplitMix64
    let startedAt: Instant
    /// What waits until it runs again.
    var inbox: [MembershipEvent] = []
    /// Which connection it speaks on with whom, as its shell would keep it.
    var connectionsInUse: [NodeID: ConnectionID] = [:]
    /// What it was told last to believe.
    var reportedRecords: [NodeID: MemberRecord] = [:]
    /// Which link a connection is, and which end of it.
    var links: [ConnectionID: (link: Int, end: Int)] = [:]
    var dialling: Set<PeerAddress> = []
    var plannedTick = Instant.distantFuture
    var bytesSent = 0
    /// Until then it may be believed dead: it was paused, or cut off.
    var exemptUntil = Instant.zero

    package var id: NodeID { membership.own.member.id }
    var isRunning: Bool { state == .running }
}
