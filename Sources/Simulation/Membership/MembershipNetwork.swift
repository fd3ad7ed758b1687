import Cluster
package import Ground

/// The hosts of a membership simulation, and the connections between their processes.
package struct MembershipNetwork: Sendable {
    /// A machine with an address, on which at most one process runs.
    struct Host: Sendable {
        let address: PeerAddress
        var isUp = true
        /// The process that listens on the host.
        var process: Int?
    }

    /// A block of traffic from some hosts to others, and back unless it is one-way.
    struct Partition: Sendable {
        /// The hosts that are cut off; a one-way partition blocks only what they send.
        let hosts: Set<Int>
        /// The other hosts; `nil` for all.
        var from: Set<Int>?
        let isOneWay: Bool
    }

    /// The quality of the network.
    package let conditions: NetworkConditions
    var hosts: [Host] = []
    var partitions: [Partition] = []
    private(set) var links: [SimulatedLink] = []

    /// Creates a network without hosts.
    init(_ conditions: NetworkConditions) {
        self.conditions = conditions
    }

    // MARK: Hosts

    /// Adds a host with an address of its own and returns its index.
    mutating func addHost() -> Int {
        let number = UInt32(hosts.count)
        let address = PeerAddress(.v4(0x0A00_0000 + number), port: UInt16(7_000 + number % 1_000))
        hosts.append(Host(address: address))
        return hosts.count - 1
    }

    /// Returns the host at an address that the host `from` can exchange packets with; `nil` if
    /// there is none.
    func host(at address: PeerAddress, from: Int) -> Int? {
        guard let to = hosts.firstIndex(where: { $0.address == address }), hosts[to].isUp,
            !isBlocked(from: from, to: to), !isBlocked(from: to, to: from)
        else { return nil }
        return to
    }

    /// Returns true if a partition blocks traffic from one host to another.
    func isBlocked(from: Int, to: Int) -> Bool {
        partitions.contains { partition in
            let (left, right) = (partition.hosts.contains(from), partition.hosts.contains(to))
            guard left != right, left || !partition.isOneWay else { return false }
            return partition.from?.contains(left ? to : from) ?? true
        }
    }

    // MARK: Connections

    /// Adds a connection from one process to another, and returns its index.
    mutating func connect(_ process: Int, to acceptor: Int, at address: PeerAddress) -> Int {
        let number = UInt64(links.count)
        links.append(
            SimulatedLink(
                dialled: address,
                ends: [
                    SimulatedLink.End(process: process, id: ConnectionID(2 * number)),
                    SimulatedLink.End(process: acceptor, id: ConnectionID(2 * number + 1)),
                ]))
        return links.count - 1
    }

    /// One end of a connection.
    subscript(end: LinkEnd) -> SimulatedLink.End {
        get { links[end.link].ends[end.end] }
        set { links[end.link].ends[end.end] = newValue }
    }

    /// The packets from one end of a connection to the other.
    subscript(from end: LinkEnd) -> SimulatedLink.Flow {
        get { links[end.link].flows[end.end] }
        _modify { yield &links[end.link].flows[end.end] }
    }

    /// The address that an end has dialled; `nil` for the accepting end.
    func dialledAddress(of end: LinkEnd) -> PeerAddress? {
        end.end == 0 ? links[end.link].dialled : nil
    }

    /// The connections that are open at both ends.
    package var openLinks: [Int] {
        links.indices.filter { links[$0].ends[0].isOpen && links[$0].ends[1].isOpen }
    }

    /// The number of connections ever opened between two processes.
    package var linkCount: Int {
        links.count { $0.ends[0].process != $0.ends[1].process }
    }

    /// Returns the two processes of a connection.
    package func processes(of link: Int) -> [Int] { links[link].ends.map(\.process) }

    /// Returns true if the two processes of a connection have another one that both saw open.
    func hasOther(_ link: Int) -> Bool {
        let pair = Set(processes(of: link))
        return openLinks.contains { other in
            other != link && Set(processes(of: other)) == pair
                && links[other].ends.allSatisfy(\.hasReceivedHello)
        }
    }
}

/// The quality of a simulated network.
package struct NetworkConditions: Hashable, Sendable {
    /// The share of packets that have to be retransmitted, from 0 to 1.
    package var loss = 0.0
    /// The minimum one-way delay.
    package var delay = Interval.milliseconds(1)
    /// The maximum that is randomly added to the delay.
    package var jitter = Interval.milliseconds(1)

    /// Creates the conditions of a good network.
    package init() {}

    /// Returns the delay of a packet that is not lost.
    func latency(using dice: inout SplitMix64) -> Interval {
        let added =
            jitter > .zero ? Int64.random(in: 0..<jitter.nanoseconds, using: &dice) : 0
        return delay + Interval(nanoseconds: added)
    }

    /// Returns the delay of a packet, including its retransmissions.
    func transmissionDelay(using dice: inout SplitMix64) -> Interval {
        var total = latency(using: &dice)
        var retry = SimulatedLink.Flow.retry
        while loss > 0, Double.random(in: 0..<1, using: &dice) < loss, retry < .seconds(10) {
            total = total + retry
            retry = retry + retry
        }
        return total
    }
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

/// The position of one end of a connection: 0 for the dialling end, 1 for the accepting one.
struct LinkEnd: Hashable, Sendable {
    let link: Int
    let end: Int

    var opposite: LinkEnd { LinkEnd(link: link, end: 1 - end) }

    /// Returns both ends of a connection.
    static func both(of link: Int) -> [LinkEnd] { (0...1).map { LinkEnd(link: link, end: $0) } }
}

/// A connection between two processes with the properties of TCP; each direction is ordered and
/// lossless, but may stall.
struct SimulatedLink: Sendable {
    /// The packets of one direction.
    struct Flow: Sendable {
        /// The first retransmission time-out (RFC 6298 has 1 s; kernels start at 200 ms).
        static let retry = Interval.milliseconds(200)
        private static let retryMax = Interval.seconds(30)
        /// The time without acknowledgement after which a connection breaks (TCP_USER_TIMEOUT).
        private static let patience = Interval.seconds(40)

        private var packets: [(packet: SimulatedPacket, arrival: Instant)] = []
        /// The index of the first packet that has not arrived.
        private var head = 0
        /// The earliest arrival of the next packet.
        var lastArrival = Instant.zero
        /// The number of retransmissions of the first packet.
        private var retries = 0
        /// The time since which the first packet is blocked; `nil` if it is not.
        private var stalledSince: Instant?
        /// True while an arrival of the first packet is scheduled.
        private var isPlanned = false

        /// True if nothing was sent yet.
        var isUnused: Bool { packets.isEmpty && head == 0 }

        /// Appends a packet that would arrive at `instant` alone.
        mutating func append(_ packet: SimulatedPacket, arrival instant: Instant) {
            lastArrival = max(instant, lastArrival)
            packets.append((packet, lastArrival))
        }

        /// Returns when the first packet arrives, to be scheduled; `nil` if there is none or its
        /// arrival is scheduled.
        mutating func planArrival(now: Instant) -> Instant? {
            guard !isPlanned, head < packets.count else { return nil }
            isPlanned = true
            return max(now, packets[head].arrival)
        }

        /// Records that the scheduled arrival has begun.
        mutating func arrived() { isPlanned = false }

        /// Removes the first packet, which has arrived; `nil` if there is none.
        mutating func takeFirst() -> SimulatedPacket? {
            (retries, stalledSince) = (0, nil)
            guard head < packets.count else { return nil }
            let first = packets[head].packet
            head += 1
            if head > 64, head * 2 > packets.count {
                packets.removeFirst(head)
                head = 0
            }
            return first
        }

        /// Returns when the first packet, which is blocked, is sent again; `nil` once the time-out
        /// has passed and the connection breaks.
        mutating func planRetransmission(now: Instant) -> Instant? {
            let since = stalledSince ?? now
            stalledSince = since
            guard now - since < Self.patience else { return nil }
            var wait = Self.retry
            for _ in 0..<min(retries, 10) { wait = wait + wait }
            retries += 1
            isPlanned = true
            return now + min(wait, Self.retryMax)
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

    /// The address that the dialling end has dialled.
    let dialled: PeerAddress
    /// The dialling end, then the accepting end.
    var ends: [End]
    /// The flow from the dialling end, then the flow from the accepting end.
    var flows = [Flow(), Flow()]
}

extension GossipMessage {
    /// The estimated bytes on the wire: a TLS record (22), a frame header (12), 70 for each member
    /// record.
    var wireBytes: Int {
        let head = 22 + 12
        switch self {
        case .ping(_, let news), .ack(_, let news): return head + 6 + 70 * news.count
        case .pingRequest(_, _, let news): return head + 22 + 70 * news.count
        case .nack: return head + 4
        case .updates(let news): return head + 2 + 70 * news.count
        case .table(let table, _): return head + 3 + 70 * table.count
        }
    }

    /// The estimated bytes of a hello.
    static let helloBytes = 34 + 90
}
