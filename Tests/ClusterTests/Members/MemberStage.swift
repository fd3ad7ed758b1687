import Cluster
import Ground

/// One node's membership, and peers that say what a test lets them say.
struct MemberStage {
    static let start = Instant(nanoseconds: 1_000_000_000)

    var node: Membership
    var now = MemberStage.start
    var dice = SplitMix64(seed: 7)
    /// Everything that came out, in order.
    private(set) var effects: [MembershipEffect] = []
    private var connections: UInt64 = 0

    /// A node with the id `own`, between peers whose ids are their numbers.
    init(
        own: UInt64 = 100, epoch: UInt64 = 5,
        settings: Membership.Settings = Membership.Settings()
    ) {
        node = Membership(
            Self.member(own), Incarnation(epoch: epoch, count: 0), settings: settings,
            now: Self.start)
    }

    /// A member with this number; `run` tells its processes apart.
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

    /// What comes out of one event.
    @discardableResult
    mutating func happens(_ event: MembershipEvent) -> [MembershipEffect] {
        var out: [MembershipEffect] = []
        node.handle(event, now: now, using: &dice, effects: &out)
        effects += out
        return out
    }

    /// A peer's connection is opened.
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

    /// Ticks as a shell would for so long; `reply` gives what is said back to each message.
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

    /// The same where every peer acknowledges, but for the one on a connection that is `silent`.
    @discardableResult
    mutating func answered(
        for interval: Interval, but silent: ConnectionID? = nil
    ) -> [MembershipEffect] {
        run(for: interval) { message, id in id == silent ? nil : Self.ack(message) }
    }

    /// A peer that acknowledges every ping.
    static func ack(_ message: GossipMessage) -> GossipMessage? {
        guard case .ping(let sequence, _) = message else { return nil }
        return .ack(sequence: sequence, updates: [])
    }
}

extension [MembershipEffect] {
    /// What was said on a connection.
    func said(on id: ConnectionID) -> [GossipMessage] {
        compactMap { effect in
            guard case .send(let message, id) = effect else { return nil }
            return message
        }
    }

    /// The pings, each with the connection that it goes on.
    var pings: [(sequence: UInt32, line: ConnectionID)] {
        compactMap { effect in
            guard case .send(.ping(let sequence, _), let line) = effect else { return nil }
            return (sequence: sequence, line: line)
        }
    }

    /// How many are asked to ping the member with this number.
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

    /// What came to be believed, in order.
    func believed(_ number: UInt64) -> [MemberRecord.State] {
        compactMap { effect in
            guard case .memberChanged(let record, _) = effect, record.member.id.low == number else {
                return nil
            }
            return record.state
        }
    }
}
