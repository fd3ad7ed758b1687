import Cluster
import Ground

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
