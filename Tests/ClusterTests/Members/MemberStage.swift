import Cluster
import Ground

/// A node's membership, with peers whose messages the test chooses.
struct MemberStage {
    static let start = Instant(nanoseconds: 1_000_000_000)

    var node: Membership
    var now = MemberStage.start
    var dice = SplitMix64(seed: 7)
    /// All effects so far, in order.
    private(set) var effects: [MembershipEffect] = []
    private var connections: UInt64 = 0

    /// A node with the number `own`, among peers whose ids are their numbers.
    init(
        own: UInt64 = 100, epoch: UInt64 = 5,
        settings: MembershipSettings = MembershipSettings()
    ) {
        node = Membership(
            Self.member(own), Incarnation(epoch: epoch, count: 0), settings: settings,
            now: Self.start)
    }

    /// The member with this number; `run` distinguishes its processes.
    static func member(_ number: UInt64, run: UInt64 = 0) -> Member {
        Member(
            id: NodeID(low: number, high: 0), process: ProcessID(high: number, low: run),
            address: PeerAddress(.v4(UInt32(0x0A00_0000 + number)), port: 7_000),
            weight: Member.defaultWeight, versions: 1...1, role: .isCaughtUp)
    }

    static func record(
        _ number: UInt64, run: UInt64 = 0, epoch: UInt64 = 5, count: UInt32 = 0,
        _ state: MemberRecord.State = .alive
    ) -> MemberRecord {
        MemberRecord(member(number, run: run), Incarnation(epoch: epoch, count: count), state)
    }

    func state(_ number: UInt64) -> MemberRecord.State? {
        node[NodeID(low: number, high: 0)]?.state
    }

    func connection(_ number: UInt64) -> ConnectionID? {
        node.connection(to: NodeID(low: number, high: 0))
    }

    /// Handles an event and returns its effects.
    @discardableResult
    mutating func happens(_ event: MembershipEvent) -> [MembershipEffect] {
        var out: [MembershipEffect] = []
        node.handle(event, now: now, using: &dice, effects: &out)
        effects += out
        return out
    }

    /// Opens a connection of a peer.
    @discardableResult
    mutating func connect(
        _ number: UInt64, run: UInt64 = 0, epoch: UInt64 = 5, isOwnDial: Bool = false
    ) -> ConnectionID {
        connections += 1
        let id = ConnectionID(connections)
        let member = Self.member(number, run: run)
        happens(
            .connectionOpened(
                id, dialled: isOwnDial ? member.address : nil, member,
                Incarnation(epoch: epoch, count: 0)))
        return id
    }

    /// Ticks for a time; `reply` gives each peer's reply to a message.
    @discardableResult
    mutating func run(
        for interval: Interval,
        reply: (GossipMessage, ConnectionID) -> GossipMessage? = { _, _ in nil }
    ) -> [MembershipEffect] {
        let end = now + interval
        var out: [MembershipEffect] = []
        while node.nextTick <= end {
            now = max(now, node.nextTick)
            var fresh = happens(.ticked)
            out += fresh
            while let effect = fresh.first {
                fresh.removeFirst()
                guard case .send(let message, let id) = effect, let response = reply(message, id)
                else { continue }
                let next = happens(.messageReceived(response, on: id))
                out += next
                fresh += next
            }
        }
        now = end
        return out
    }

    /// The same with peers that acknowledge every ping, except on the connection `silent`.
    @discardableResult
    mutating func answered(
        for interval: Interval, but silent: ConnectionID? = nil
    ) -> [MembershipEffect] {
        run(for: interval) { message, id in id == silent ? nil : Self.ack(message) }
    }

    /// The acknowledgement of a ping.
    static func ack(_ message: GossipMessage) -> GossipMessage? {
        guard case .ping(let sequence, _) = message else { return nil }
        return .ack(sequence: sequence, updates: [])
    }
}

extension [MembershipEffect] {
    /// The messages sent on a connection.
    func messages(on id: ConnectionID) -> [GossipMessage] {
        compactMap { effect in
            guard case .send(let message, id) = effect else { return nil }
            return message
        }
    }

    /// The pings, each with its connection.
    var pings: [(sequence: UInt32, line: ConnectionID)] {
        compactMap { effect in
            guard case .send(.ping(let sequence, _), let line) = effect else { return nil }
            return (sequence: sequence, line: line)
        }
    }

    /// The number of indirect probes of the member with this number.
    func pingRequests(of number: UInt64) -> Int {
        filter { effect in
            guard case .send(.pingRequest(_, let target, _), _) = effect else { return false }
            return target.low == number
        }.count
    }

    var dials: [PeerAddress] {
        compactMap { effect in
            guard case .dial(let address) = effect else { return nil }
            return address
        }
    }

    /// The believed states of the member, in order.
    func believed(_ number: UInt64) -> [MemberRecord.State] {
        compactMap { effect in
            guard case .memberChanged(let record, _) = effect, record.member.id.low == number else {
                return nil
            }
            return record.state
        }
    }
}
