import Ground
import Origin
import Testing

@Suite("Places, queue and circuit of each origin")
struct OriginGateTests {
    private let origin = OriginAuthority(host: "a.example", port: 80)
    private let other = OriginAuthority(host: "b.example", port: 80)

    private func gate(connections: Int = 2, queue: Int = 2, failures: Int? = 2) -> OriginGate {
        OriginGate(
            settings: OriginGate.Settings(
                connectionsMax: connections, queueMax: queue,
                circuit: CircuitLimits(failures: failures, pause: .seconds(5))))
    }

    private func ticket(_ fetch: UInt64, loop: Int = 0) -> OriginGate.Ticket {
        OriginGate.Ticket(loop: loop, fetch: fetch)
    }

    private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    @Test("So many connections, then so many who wait, then none")
    func limits() {
        var gate = gate()
        #expect(gate.arrived(ticket(1), at: origin, now: at(0)) == .open)
        #expect(gate.arrived(ticket(2), at: origin, now: at(0)) == .open)
        #expect(
            gate.arrived(ticket(3), at: origin, now: at(0)) == .wait(closingIdleOn: nil))
        #expect(
            gate.arrived(ticket(4), at: origin, now: at(0)) == .wait(closingIdleOn: nil))
        #expect(gate.arrived(ticket(5), at: origin, now: at(0)) == .refused(.queueFull))
        // Another origin has places of its own.
        #expect(gate.arrived(ticket(6), at: other, now: at(0)) == .open)
        #expect(gate.closed(origin) == .granted(ticket(3), origin))
        #expect(gate.closed(origin) == .granted(ticket(4), origin))
        #expect(gate.closed(origin) == nil)
    }

    @Test("A connection that becomes free is kept, or goes to whoever waits on its loop")
    func released() {
        var gate = gate(connections: 1)
        _ = gate.arrived(ticket(1), at: origin, now: at(0))
        #expect(gate.released(origin, on: 0) == .keep)
        #expect(gate.arrived(ticket(2), at: origin, now: at(0)) == .useIdle)
        _ = gate.arrived(ticket(3), at: origin, now: at(0))
        #expect(gate.released(origin, on: 0) == .handOver(ticket(3)))
        _ = gate.arrived(ticket(4, loop: 1), at: origin, now: at(0))
        #expect(gate.released(origin, on: 0) == .close)
        #expect(gate.closed(origin) == .granted(ticket(4, loop: 1), origin))
    }

    @Test("A loop's own fetches pass over another loop's only so often")
    func passedOver() {
        var gate = gate(connections: 1, queue: 100)
        _ = gate.arrived(ticket(1), at: origin, now: at(0))
        _ = gate.arrived(ticket(2, loop: 1), at: origin, now: at(0))
        for number in 3..<20 { _ = gate.arrived(ticket(UInt64(number)), at: origin, now: at(0)) }
        var handedOver = 0
        while case .handOver = gate.released(origin, on: 0) { handedOver += 1 }
        #expect(handedOver == 8)
        #expect(gate.closed(origin) == .granted(ticket(2, loop: 1), origin))
    }

    @Test("Who waits gets the place of a connection that is idle on another loop")
    func idleElsewhere() {
        var gate = gate(connections: 1)
        _ = gate.arrived(ticket(1), at: origin, now: at(0))
        _ = gate.released(origin, on: 0)
        let wanted = ticket(2, loop: 1)
        #expect(gate.arrived(wanted, at: origin, now: at(0)) == .wait(closingIdleOn: 0))
        // It is asked for once, and no fetch takes it meanwhile.
        let next = ticket(3, loop: 0)
        #expect(gate.arrived(next, at: origin, now: at(0)) == .wait(closingIdleOn: nil))
        #expect(gate.closed(origin, wasAskedFor: true) == .granted(wanted, origin))
    }

    @Test("A fetch that left waits no more")
    func left() {
        var gate = gate(connections: 1)
        _ = gate.arrived(ticket(1), at: origin, now: at(0))
        _ = gate.arrived(ticket(2), at: origin, now: at(0))
        _ = gate.arrived(ticket(3), at: origin, now: at(0))
        gate.left(ticket(2), origin)
        #expect(gate.closed(origin) == .granted(ticket(3), origin))
    }

    @Test("A circuit that opens sends away who waits, and refuses until its time")
    func circuit() {
        var gate = gate(connections: 1)
        _ = gate.arrived(ticket(1), at: origin, now: at(0))
        _ = gate.arrived(ticket(2), at: origin, now: at(0))
        var ended = gate.ended(ticket(1), origin, .failed(.connection), now: at(0))
        #expect(ended.change == nil && ended.news.isEmpty)
        ended = gate.ended(ticket(9), origin, .failed(.connection), now: at(0))
        #expect(ended.change == .opened(failures: 2, pause: .seconds(5)))
        #expect(ended.news == [.refused(ticket(2), retryAfter: .seconds(5))])
        #expect(gate.closed(origin) == nil)
        #expect(
            gate.arrived(ticket(3), at: origin, now: at(1))
                == .refused(.circuitOpen(retryAfter: .seconds(4))))
        #expect(gate.standings(now: at(1)).map(\.retryAfter) == [.seconds(4)])

        #expect(gate.arrived(ticket(4), at: origin, now: at(5)) == .open)
        #expect(gate.arrived(ticket(7), at: origin, now: at(5)) == .wait(closingIdleOn: nil))
        #expect(
            gate.arrived(ticket(5), at: origin, now: at(5))
                == .refused(.circuitOpen(retryAfter: .seconds(1))))
        // What began before says nothing now.
        ended = gate.ended(ticket(8), origin, .failed(.connection), now: at(5))
        #expect(ended.change == nil)
        #expect(gate.answered(origin) == .closed)
        #expect(gate.arrived(ticket(6), at: origin, now: at(5)) != .refused(.queueFull))
    }

    @Test("A trial that is cancelled leaves the next one to try")
    func trialCancelled() {
        var gate = gate(connections: 3, failures: 1)
        _ = gate.arrived(ticket(1), at: origin, now: at(0))
        _ = gate.ended(ticket(1), origin, .failed(.connection), now: at(0))
        #expect(gate.arrived(ticket(2), at: origin, now: at(5)) == .open)
        _ = gate.ended(ticket(2), origin, .neutral, now: at(5))
        #expect(gate.arrived(ticket(3), at: origin, now: at(5)) == .open)
    }

    @Test("Higher limits let in who waits")
    func adopted() {
        var gate = gate(connections: 1)
        for number in 1...3 { _ = gate.arrived(ticket(UInt64(number)), at: origin, now: at(0)) }
        var settings = gate.settings
        settings.connectionsMax = 5
        #expect(gate.adopt(settings) == [.granted(ticket(2), origin), .granted(ticket(3), origin)])
        #expect(gate.standings(now: at(0)).map(\.connections) == [3])
    }
}
