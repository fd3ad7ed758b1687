package import Cluster
package import Ground

/// One process of a simulated node.
package struct SimulatedProcess: Sendable {
    /// The state of a process.
    package enum State: Hashable, Sendable {
        case running
        /// The process reads nothing and gets no tick (SIGSTOP); events are queued.
        case paused
        /// The process has left, was killed, or its host was lost.
        case ended
        /// The process refused to serve.
        case refusedToServe
    }

    /// The index of its host.
    package let host: Int
    /// Its membership state machine.
    package var membership: Membership
    /// The state of the process.
    package internal(set) var state = State.running
    var dice: SplitMix64
    let startedAt: Instant
    /// The events that wait until the process resumes.
    var inbox: [MembershipEvent] = []
    /// The connection in use with each member, as a shell would keep it.
    var connectionsInUse: [NodeID: ConnectionID] = [:]
    /// The last reported record of each member.
    var reportedRecords: [NodeID: MemberRecord] = [:]
    /// The end of each open connection that belongs to this process.
    var links: [ConnectionID: LinkEnd] = [:]
    /// The addresses that are being dialled.
    var dialling: Set<PeerAddress> = []
    /// The time of the scheduled tick; `.distantFuture` for none.
    var plannedTick = Instant.distantFuture
    /// The estimated bytes that the process has sent.
    var bytesSent = 0
    /// Until then the process may be believed dead without a fault: it was paused or cut off.
    var exemptUntil = Instant.zero

    /// The node id.
    package var id: NodeID { membership.own.member.id }
    var isRunning: Bool { state == .running }
    var hasEnded: Bool { state == .ended || state == .refusedToServe }

    /// Records a reported change of a record, and returns the rule that the report breaks; `nil`
    /// if none.
    mutating func recordChange(_ record: MemberRecord, from before: MemberRecord?) -> String? {
        let member = record.member.id
        guard reportedRecords[member] == before || member == id else {
            return "changes from what it was not told"
        }
        if let before {
            if record.incarnation < before.incarnation {
                return "goes back from \(before) to \(record)"
            }
            if record == before { return "changes nothing" }
        }
        reportedRecords[member] = record
        return nil
    }
}

/// A report that one process has marked another as dead.
package struct DeathReport: Hashable, Sendable {
    /// The process that was marked as dead.
    package let of: Int
    /// The process that marked it.
    package let by: Int
    /// The time.
    package let at: Instant
}
