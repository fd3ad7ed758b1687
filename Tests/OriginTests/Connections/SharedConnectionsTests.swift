import Origin
import Testing

@Suite("Sharing connections")
struct SharedConnectionsTests {
    let origin = OriginAuthority(host: "a.example", port: 443, isSecure: true)
    let first = OriginConnectionID(1)
    let second = OriginConnectionID(2)

    /// A state in which fetch 1 opens a connection and the others wait.
    private func opening(waiting: ClosedRange<UInt64>) -> SharedConnections {
        var shared = SharedConnections(waitingMax: 100)
        #expect(shared.connectionDecision(by: 1, to: origin) == .openOwn)
        shared.openingStarted(1, to: origin, hasSlot: true)
        for fetch in waiting { #expect(shared.connectionDecision(by: fetch, to: origin) == .wait) }
        return shared
    }

    @Test("Of concurrent fetches one opens a connection; the others join it in order")
    func joined() {
        var shared = opening(waiting: 2...4)
        #expect(
            shared.capacityChanged(first, to: origin, availableStreams: 2) == [
                .join(2, first), .join(3, first),
            ])
        #expect(shared.openingEnded(1, to: origin) == [.openOwn(4)])
        #expect(shared.connectionDecision(by: 5, to: origin) == .wait)
        // The next one waits for a slot, and joins a connection with room if there is one first.
        shared.openingStarted(4, to: origin, hasSlot: false)
        #expect(
            shared.capacityChanged(first, to: origin, availableStreams: 1) == [
                .join(4, first), .openOwn(5),
            ])
        shared.openingStarted(5, to: origin, hasSlot: true)
        #expect(shared.capacityChanged(first, to: origin, availableStreams: 1) == [])
        #expect(shared.connectionDecision(by: 6, to: origin) == .join(first))
    }

    @Test("The oldest connection is filled first")
    func order() {
        var shared = SharedConnections(waitingMax: 1)
        _ = shared.capacityChanged(first, to: origin, availableStreams: 1)
        _ = shared.capacityChanged(second, to: origin, availableStreams: 5)
        #expect(shared.connectionDecision(by: 1, to: origin) == .join(first))
        #expect(shared.connectionDecision(by: 2, to: origin) == .join(second))
        _ = shared.capacityChanged(first, to: origin, availableStreams: 1)
        #expect(shared.connectionDecision(by: 3, to: origin) == .join(first))
    }

    @Test("If the connection cannot be shared, all waiting fetches open their own")
    func dismissed() {
        var shared = opening(waiting: 2...3)
        #expect(shared.removeWaiting(from: origin) == [2, 3])
        #expect(shared.openingEnded(1, to: origin) == [])
        #expect(shared.waitingCount == 0)
        #expect(shared.connectionDecision(by: 4, to: origin) == .openOwn)
    }

    @Test("If the opening fetch leaves, the next one opens")
    func openerLeaves() {
        var shared = opening(waiting: 2...3)
        let (second, first) = (shared.fetchEnded(2, origin), shared.fetchEnded(1, origin))
        #expect(!second && first)
        #expect(shared.openingEnded(1, to: origin) == [.openOwn(3)])
        #expect(shared.connectionDecision(by: 3, to: origin) == .openOwn)
    }

    @Test("A connection that ended or is idle is not joined")
    func ended() {
        var shared = SharedConnections(waitingMax: 10)
        _ = shared.capacityChanged(first, to: origin, availableStreams: 3)
        #expect(shared.connectionEnded(first, to: origin) == [])
        #expect(shared.connectionDecision(by: 1, to: origin) == .openOwn)
        _ = shared.capacityChanged(first, to: origin, availableStreams: 3)
        shared.removeAllConnections()
        #expect(shared.connectionDecision(by: 2, to: origin) == .openOwn)
    }

    @Test("The number of waiting fetches is limited")
    func limit() {
        var shared = SharedConnections(waitingMax: 1)
        _ = shared.connectionDecision(by: 1, to: origin)
        shared.openingStarted(1, to: origin, hasSlot: true)
        #expect(shared.connectionDecision(by: 2, to: origin) == .wait)
        #expect(shared.connectionDecision(by: 3, to: origin) == .refuse)
    }
}
