import Front
import Ground
import Testing

@Suite("Limits on the connections of a port")
struct ConnectionLimiterTests {
    private typealias Holder = ConnectionLimiter.ClientKey

    private let near = Holder(.v4(0x7F00_0001))
    private func far(_ number: UInt32) -> Holder { Holder(.v4(0xC000_0200 + number)) }

    @Test("Connections are admitted up to the limit, and again when one has closed")
    func places() {
        var places = ConnectionLimiter()
        let limits = ConnectionLimiter.Limits(connectionsMax: 3)
        for _ in 0..<3 { #expect(places.admit(far(1), limits) == .admitted) }
        #expect(places.admit(near, limits) == .connectionLimitReached && places.openCount == 3)
        places.remove(far(1))
        #expect(places.openCount == 2)
        #expect(places.admit(near, limits) == .admitted)
        #expect(places.admit(near, limits) == .connectionLimitReached)
    }

    @Test("Slots reserved for the machine itself are not used by others")
    func reserved() {
        var places = ConnectionLimiter()
        let limits = ConnectionLimiter.Limits(connectionsMax: 5, reservedForLocal: 2)
        for _ in 0..<3 { #expect(places.admit(far(1), limits) == .admitted) }
        #expect(places.admit(far(2), limits) == .connectionLimitReached)
        for _ in 0..<2 { #expect(places.admit(near, limits) == .admitted) }
        #expect(places.admit(near, limits) == .connectionLimitReached)
        // It was returned to its pool.
        places.remove(near)
        #expect(places.admit(far(2), limits) == .connectionLimitReached)
        #expect(places.admit(near, limits) == .admitted)
    }

    @Test("The machine itself may use more than its reserve, and others keep their slots")
    func manyOfTheMachine() {
        var places = ConnectionLimiter()
        let limits = ConnectionLimiter.Limits(connectionsMax: 5, reservedForLocal: 2)
        for _ in 0..<4 { #expect(places.admit(near, limits) == .admitted) }
        #expect(places.admit(far(1), limits) == .admitted)
        #expect(
            places.admit(far(1), limits) == .connectionLimitReached
                && places.admit(near, limits) == .connectionLimitReached)
    }

    @Test("A client has a share, of IPv6 by its /64, and others keep theirs")
    func shares() {
        var places = ConnectionLimiter()
        let limits = ConnectionLimiter.Limits(connectionsMax: 100, perClientMax: 2)
        func sixth(_ network: UInt128, _ host: UInt128) -> Holder {
            Holder(.v6(network << 64 | host))
        }
        for host in [0, 1] as [UInt128] {
            #expect(places.admit(far(1), limits) == .admitted)
            #expect(places.admit(sixth(7, host), limits) == .admitted)
        }
        #expect(places.admit(far(1), limits) == .clientLimitReached)
        #expect(places.admit(sixth(7, 99), limits) == .clientLimitReached)
        #expect(places.admit(far(2), limits) == .admitted)
        #expect(places.admit(sixth(8, 0), limits) == .admitted)
        // A mapped address counts as the IPv4 address.
        let mapped = Holder(.v6(0xFFFF_C000_0201))
        #expect(places.admit(mapped, limits) == .clientLimitReached)
        places.remove(far(1))
        #expect(places.admit(mapped, limits) == .admitted)
    }

    @Test("The default share does not apply to the machine itself; a configured one does")
    func machineShare() {
        for spares in [true, false] {
            var places = ConnectionLimiter()
            let limits = ConnectionLimiter.Limits(
                connectionsMax: 9, perClientMax: 1, exemptsLocal: spares)
            #expect(places.admit(near, limits) == .admitted)
            #expect(places.admit(near, limits) == (spares ? .admitted : .clientLimitReached))
        }
    }

    @Test("A proxy has no share until it names its client; then the client's applies")
    func proxies() {
        var places = ConnectionLimiter()
        let limits = ConnectionLimiter.Limits(connectionsMax: 9, perClientMax: 1)
        let proxy = Holder.proxy(.v4(0xC000_0201))
        for _ in 0..<3 { #expect(places.admit(proxy, limits) == .admitted) }
        let moved = [far(9), far(9), near].map { places.transfer(proxy, to: $0, limits) }
        #expect(moved == [true, false, true])
        #expect(places.openCount == 3)
        for holder in [far(9), near, proxy] { places.remove(holder) }
        #expect(places.openCount == 0)
        #expect(
            places.admit(far(9), limits) == .admitted && places.admit(near, limits) == .admitted)
    }

    @Test("In any order of opening and closing, all slots are free when all are closed")
    func balance() {
        var places = ConnectionLimiter()
        let limits = ConnectionLimiter.Limits(
            connectionsMax: 40, reservedForLocal: 5, perClientMax: 12)
        var holders: [Holder] = []
        for step in 0..<10_000 {
            let number = UInt32(step * 7_919 % 6)
            let holder = number == 0 ? near : far(number)
            if step * 104_729 % 101 < 60 {
                if places.admit(holder, limits) == .admitted { holders.append(holder) }
            } else if !holders.isEmpty {
                places.remove(holders.remove(at: step * 31 % holders.count))
            }
            #expect(places.openCount == holders.count && holders.count <= 40)
            #expect(holders.count { !$0.isLocal } <= 35)
        }
        for holder in holders { places.remove(holder) }
        #expect(places.openCount == 0)
        for _ in 0..<12 { #expect(places.admit(far(1), limits) == .admitted) }
    }

    @Test("By default one client never has all slots, however few there are")
    func shareOfFew() {
        let shares: [(places: Int, share: Int)] = [
            (1, 1), (2, 2), (4, 3), (50, 38), (341, 256), (1_000, 256), (10_000, 2_500),
        ]
        for (places, share) in shares {
            #expect(ConnectionLimiter.defaultPerClientMax(of: places) == share, "\(places)")
        }
    }
}

@Suite("Which idle connections are closed first")
struct IdleOrderTests {
    private func item(_ place: Int, _ second: Int64, isReserved: Bool = false)
        -> IdleConnectionOrder.Item
    {
        .init(
            index: place, since: Instant(nanoseconds: second * 1_000_000_000),
            isReserved: isReserved)
    }

    @Test("The connection idle longest is closed first, local ones last")
    func order() {
        let items = [
            item(0, 5), item(1, 1, isReserved: true), item(2, 9), item(3, 2), item(4, 0),
            item(5, 3, isReserved: true),
        ]
        #expect(IdleConnectionOrder.next(of: items).reversed().map(\.index) == [4, 3, 0, 2, 1, 5])
        #expect(IdleConnectionOrder.next(of: []).isEmpty)
    }

    @Test("The list is bounded and has the longest idle connections of all")
    func many() {
        let items = (0..<1_000).map { item($0, Int64(($0 * 7_919) % 1_000)) }
        let next = IdleConnectionOrder.next(of: items)
        #expect(next.count == IdleConnectionOrder.countMax)
        let longest = items.map(\.since).sorted().prefix(next.count)
        #expect(next.reversed().map(\.since) == Array(longest))
    }
}
