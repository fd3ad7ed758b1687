import Origin
import Testing

@Suite("Fetches that share connections")
struct SharedConnectionsTests {
    let origin = OriginAuthority(host: "a.example", port: 443, isSecure: true)
    let first = ConnectionID(1)
    let second = ConnectionID(2)

    /// Fetch 1 opens, and those that follow wait.
    private func opening(waiting: ClosedRange<UInt64>) -> SharedConnections {
        var shared = SharedConnections(waitingMax: 100)
        #expect(shared.wanted(by: 1, to: origin) == .ask)
        shared.opens(1, to: origin, hasPlace: true)
        for fetch in waiting { #expect(shared.wanted(by: fetch, to: origin) == .wait) }
        return shared
    }

    @Test("Of fetches that come together one opens; the others join it, in order, as it has room")
    func joined() {
        var shared = opening(waiting: 2...4)
        #expect(
            shared.offers(first, to: origin, room: 2) == [.join(2, first), .join(3, first)])
        #expect(shared.opensNoMore(1, to: origin) == [.ask(4)])
        #expect(shared.wanted(by: 5, to: origin) == .wait)
        // The next one waits for a place, and takes room where there is some first.
        shared.opens(4, to: origin, hasPlace: false)
        #expect(shared.offers(first, to: origin, room: 1) == [.join(4, first), .ask(5)])
        shared.opens(5, to: origin, hasPlace: true)
        #expect(shared.offers(first, to: origin, room: 1) == [])
        #expect(shared.wanted(by: 6, to: origin) == .join(first))
    }

    @Test("The connection that was there first is filled first")
    func order() {
        var shared = SharedConnections(waitingMax: 1)
        _ = shared.offers(first, to: origin, room: 1)
        _ = shared.offers(second, to: origin, room: 5)
        #expect(shared.wanted(by: 1, to: origin) == .join(first))
        #expect(shared.wanted(by: 2, to: origin) == .join(second))
        _ = shared.offers(first, to: origin, room: 1)
        #expect(shared.wanted(by: 3, to: origin) == .join(first))
    }

    @Test("Without sharing all that wait open connections of their own")
    func dismissed() {
        var shared = opening(waiting: 2...3)
        #expect(shared.dismissed(from: origin) == [2, 3])
        #expect(shared.opensNoMore(1, to: origin) == [])
        #expect(shared.waitingCount == 0)
        #expect(shared.wanted(by: 4, to: origin) == .ask)
    }

    @Test("Who opens and leaves makes the next one open")
    func openerLeaves() {
        var shared = opening(waiting: 2...3)
        let (second, first) = (shared.left(2, origin), shared.left(1, origin))
        #expect(!second && first)
        #expect(shared.opensNoMore(1, to: origin) == [.ask(3)])
        #expect(shared.wanted(by: 3, to: origin) == .ask)
    }

    @Test("A connection that ended or is idle is joined no more")
    func ended() {
        var shared = SharedConnections(waitingMax: 10)
        _ = shared.offers(first, to: origin, room: 3)
        #expect(shared.ended(first, to: origin) == [])
        #expect(shared.wanted(by: 1, to: origin) == .ask)
        _ = shared.offers(first, to: origin, room: 3)
        shared.drained()
        #expect(shared.wanted(by: 2, to: origin) == .ask)
    }

    @Test("No more wait than may")
    func limit() {
        var shared = SharedConnections(waitingMax: 1)
        _ = shared.wanted(by: 1, to: origin)
        shared.opens(1, to: origin, hasPlace: true)
        #expect(shared.wanted(by: 2, to: origin) == .wait)
        #expect(shared.wanted(by: 3, to: origin) == .refuse)
    }
}
