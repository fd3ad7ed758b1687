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

/// What travels on a simulated connection.
enum SimulatedPacket: Sendable {
    case hello(Member, Incarnation)
    case gossip(GossipMessage)
    /// Said last.
    case goodbye(CloseReason)
    /// The other end is gone without a word (FIN or RST of a killed process).
    case reset
}

/// A connection of two processes: each direction keeps its order and loses nothing, but stalls.
struct SimulatedLink: Sendable {
    /// One direction.
    struct Flow: Sendable {
        var packets: [(packet: SimulatedPacket, arrival: Instant)] = []
        var head = 0
        var lastArrival = Instant.zero
        /// How often the first packet was sent again, and since when.
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

    /// One process's end of it.
    struct End: Sendable {
        let process: Int
        let id: ConnectionID
        /// The process has it still.
        var isOpen = true
        /// The process was told that it is open.
        var hasReceivedHello = false
    }

    let dialled: PeerAddress
    /// The one that dialled, the one that accepted.
    var ends: [End]
    /// From the one that dialled, from the one that accepted.
    var flows = [Flow(), Flow()]
}
