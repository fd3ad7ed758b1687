import Cluster
import Ground
import Testing

@Suite("Nodes that cannot be peers")
struct PeerRejectionsTests {
    private let now = Instant.zero + .seconds(1_000)
    private let address = PeerAddress(.v4(0x0A00_0003), port: 8082)

    private func addresses(_ table: PeerRejections, at now: Instant) -> [String] {
        table.current(now: now).map(\.address)
    }

    @Test("An attempt counts until it has not been repeated for longer than any wait for a dial")
    func lifetime() {
        var table = PeerRejections()
        table.record("\(address)", dialled: address, .otherSecret, now: now)
        #expect(
            table.current(now: now + PeerRejections.lifetime).map(\.reason) == [.otherSecret])
        #expect(table.current(now: now + PeerRejections.lifetime + .milliseconds(1)) == [])
        table.record("\(address)", dialled: address, .otherProtocol, now: now + .seconds(60))
        #expect(table.current(now: now + .seconds(120)).map(\.reason) == [.otherProtocol])
        let settings = MembershipSettings()
        #expect(
            PeerRejections.lifetime > settings.deadDialDelayMax + settings.dialTimeout)
    }

    @Test("A node that becomes a peer is no longer listed")
    func accepted() {
        var table = PeerRejections()
        table.record("10.0.0.3:8082", dialled: address, .otherSecret, now: now)
        table.record("10.0.0.4", dialled: nil, .noCommonVersion(2...3), now: now)
        table.clear("10.0.0.3:8082")
        #expect(addresses(table, at: now) == ["10.0.0.4"])
    }

    @Test("A node that has dialled is omitted where this node has dialled the same host")
    func both() {
        var table = PeerRejections()
        table.record("10.0.0.3", dialled: nil, .otherSecret, now: now)
        table.record("10.0.0.4", dialled: nil, .otherSecret, now: now)
        table.record("10.0.0.3:8082", dialled: address, .otherSecret, now: now)
        #expect(addresses(table, at: now) == ["10.0.0.3:8082", "10.0.0.4"])
    }

    @Test("Strangers cannot grow the table, and those that have gone make room")
    func bounded() {
        var table = PeerRejections()
        for number in 0..<1_000 {
            table.record("10.1.0.\(number)", dialled: nil, .otherSecret, now: now)
        }
        #expect(addresses(table, at: now).count == PeerRejections.addressesMax)
        let later = now + .seconds(100)
        table.record("10.2.0.1", dialled: nil, .otherSecret, now: later)
        #expect(addresses(table, at: later) == ["10.2.0.1"])
    }

    @Test("Only faults that show another protocol or version are reasons")
    func faults() {
        #expect(PeerRejections.Reason(.noCommonVersion(7...8)) == .noCommonVersion(7...8))
        #expect(PeerRejections.Reason(.notPeerProtocol) == .otherProtocol)
        for fault in [.selfConnection, .helloMissing, .flood] as [PeerFault] {
            #expect(PeerRejections.Reason(fault) == nil)
        }
    }
}
