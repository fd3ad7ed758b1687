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
    /// The link of each open connection, and the end of it that belongs to this process.
    var links: [ConnectionID: (link: Int, end: Int)] = [:]
    var dialling: Set<PeerAddress> = []
    var plannedTick = Instant.distantFuture
    var bytesSent = 0
    /// Until then the process may be believed dead without a fault: it was paused or cut off.
    var exemptUntil = Instant.zero

    /// The node id.
    package var id: NodeID { membership.own.member.id }
    var isRunning: Bool { state == .running }
}

/// A packet on a simulated connection.
enum SimulatedPacket: Sendable {
    case hello(Member, Incarnation)
    case gossip(GossipMessage)
    /// The last packet of an orderly close.
    case goodbye(CloseReason)
    /// The other end has closed without a goodbye (FIN or RST of a killed process).
    case reset
}

/// A connection between two processes; each direction is ordered and lossless, but may stall.
struct SimulatedLink: Sendable {
    /// One direction.
    struct Flow: Sendable {
        var packets: [(packet: SimulatedPacket, arrival: Instant)] = []
        var head = 0
        var lastArrival = Instant.zero
        /// The number of retransmissions of the first packet, and since when it is blocked.
        var retries = 0
        var stalledSince: Instant?
        var isPlanned = false

        var isEmpty: Bool { head == packets.count }

        mutating func takeFirst() -> SimulatedPacket {
            let first = packets[head].packet
            head += 1
            if head > 64, head * 2 > packets.count {
                packets.removeFirst(head)
                head = 0
            }
            return first
        }
    }

    /// One process's end of the connection.
    struct End: Sendable {
        let process: Int
        let id: ConnectionID
        /// True while the process has not closed the connection.
        var isOpen = true
        /// True once the connection was reported to the process as open.
        var hasReceivedHello = false
    }

    let dialled: PeerAddress
    /// The dialling end, then the accepting end.
    var ends: [End]
    /// The flow from the dialling end, then the flow from the accepting end.
    var flows = [Flow(), Flow()]
}
