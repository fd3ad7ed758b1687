import Ground
import Origin
import Testing

@Suite("Slots, queue and circuit of each origin")
struct OriginAdmissionTests {
    private let origin = OriginAuthority(host: "a.example", port: 80)
    private let other = OriginAuthority(host: "b.example", port: 80)

    private func gate(connections: Int = 2, queue: Int = 2, failures: Int? = 2) -> OriginAdmission {
        OriginAdmission(
            settings: OriginAdmission.Settings(
                connectionsMax: connections, queueMax: queue,
                circuit: CircuitLimits(failures: failures, openInterval: .seconds(5))))
    }

    private func ticket(_ fetch: UInt64, loop: Int = 0) -> OriginAdmission.TransactionID {
        OriginAdmission.TransactionID(loop: loop, transaction: fetch)
    }

    private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    @Test("Requests get a slot, then a place in the queue, and then are refused")
    func limits() {
        var gate = gate()
        #expect(gate.requestAdmission(ticket(1), at: origin, now: at(0)) == .open)
        #expect(gate.requestAdmission(ticket(2), at: origin, now: at(0)) == .open)
        #expect(
            gate.requestAdmission(ticket(3), at: origin, now: at(0))
                == .wait(closingIdleOnLoop: nil))
        #expect(
            gate.requestAdmission(ticket(4), at: origin, now: at(0))
                == .wait(closingIdleOnLoop: nil))
        #expect(gate.requestAdmission(ticket(5), at: origin, now: at(0)) == .refused(.queueFull))
        // Another origin has slots of its own.
        #expect(gate.requestAdmission(ticket(6), at: other, now: at(0)) == .open)
        #expect(gate.connectionClosed(origin) == .granted(ticket(3), origin))
        #expect(gate.connectionClosed(origin) == .granted(ticket(4), origin))
        #expect(gate.connectionClosed(origin) == nil)
    }

    @Test("A connection that becomes free stays idle, or serves a fetch waiting on its loop")
    func released() {
        var gate = gate(connections: 1)
        _ = gate.requestAdmission(ticket(1), at: origin, now: at(0))
        #expect(gate.connectionReleased(origin, on: 0) == .keep)
        #expect(gate.requestAdmission(ticket(2), at: origin, now: at(0)) == .useIdle)
        _ = gate.requestAdmission(ticket(3), at: origin, now: at(0))
        #expect(gate.connectionReleased(origin, on: 0) == .assign(ticket(3)))
        _ = gate.requestAdmission(ticket(4, loop: 1), at: origin, now: at(0))
        #expect(gate.connectionReleased(origin, on: 0) == .close)
        #expect(gate.connectionClosed(origin) == .granted(ticket(4, loop: 1), origin))
    }

    @Test("A loop's own fetches overtake another loop's only a limited number of times")
    func passedOver() {
        var gate = gate(connections: 1, queue: 100)
        _ = gate.requestAdmission(ticket(1), at: origin, now: at(0))
        _ = gate.requestAdmission(ticket(2, loop: 1), at: origin, now: at(0))
        for number in 3..<20 {
            _ = gate.requestAdmission(ticket(UInt64(number)), at: origin, now: at(0))
        }
        var handedOver = 0
        while case .assign = gate.connectionReleased(origin, on: 0) { handedOver += 1 }
        #expect(handedOver == 8)
        #expect(gate.connectionClosed(origin) == .granted(ticket(2, loop: 1), origin))
    }

    @Test("A waiting fetch gets the slot of an idle connection on another loop")
    func idleElsewhere() {
        var gate = gate(connections: 1)
        _ = gate.requestAdmission(ticket(1), at: origin, now: at(0))
        _ = gate.connectionReleased(origin, on: 0)
        let wanted = ticket(2, loop: 1)
        #expect(
            gate.requestAdmission(wanted, at: origin, now: at(0)) == .wait(closingIdleOnLoop: 0))
        // It is requested once, and no other fetch gets it meanwhile.
        let next = ticket(3, loop: 0)
        #expect(
            gate.requestAdmission(next, at: origin, now: at(0)) == .wait(closingIdleOnLoop: nil))
        #expect(gate.connectionClosed(origin, wasRequested: true) == .granted(wanted, origin))
    }

    @Test("A cancelled fetch no longer waits")
    func left() {
        var gate = gate(connections: 1)
        _ = gate.requestAdmission(ticket(1), at: origin, now: at(0))
        _ = gate.requestAdmission(ticket(2), at: origin, now: at(0))
        _ = gate.requestAdmission(ticket(3), at: origin, now: at(0))
        gate.requestCancelled(ticket(2), origin)
        #expect(gate.connectionClosed(origin) == .granted(ticket(3), origin))
    }

    @Test("An opening circuit refuses waiting and new fetches for its interval")
    func circuit() {
        var gate = gate(connections: 1)
        _ = gate.requestAdmission(ticket(1), at: origin, now: at(0))
        _ = gate.requestAdmission(ticket(2), at: origin, now: at(0))
        var ended = gate.transactionEnded(ticket(1), origin, .failed(.connection), now: at(0))
        #expect(ended.change == nil && ended.updates.isEmpty)
        ended = gate.transactionEnded(ticket(9), origin, .failed(.connection), now: at(0))
        #expect(ended.change == .opened(failures: 2, openInterval: .seconds(5)))
        #expect(ended.updates == [.refused(ticket(2), retryAfter: .seconds(5))])
        #expect(gate.connectionClosed(origin) == nil)
        #expect(
            gate.requestAdmission(ticket(3), at: origin, now: at(1))
                == .refused(.circuitOpen(retryAfter: .seconds(4))))
        #expect(gate.statuses(now: at(1)).map(\.retryAfter) == [.seconds(4)])

        #expect(gate.requestAdmission(ticket(4), at: origin, now: at(5)) == .open)
        #expect(
            gate.requestAdmission(ticket(7), at: origin, now: at(5))
                == .wait(closingIdleOnLoop: nil))
        #expect(
            gate.requestAdmission(ticket(5), at: origin, now: at(5))
                == .refused(.circuitOpen(retryAfter: .seconds(1))))
        // The result of a transaction from before the opening is ignored.
        ended = gate.transactionEnded(ticket(8), origin, .failed(.connection), now: at(5))
        #expect(ended.change == nil)
        #expect(gate.responseReceived(origin) == .closed)
        #expect(gate.requestAdmission(ticket(6), at: origin, now: at(5)) != .refused(.queueFull))
    }

    @Test("A cancelled trial leaves its place to the next")
    func trialCancelled() {
        var gate = gate(connections: 3, failures: 1)
        _ = gate.requestAdmission(ticket(1), at: origin, now: at(0))
        _ = gate.transactionEnded(ticket(1), origin, .failed(.connection), now: at(0))
        #expect(gate.requestAdmission(ticket(2), at: origin, now: at(5)) == .open)
        _ = gate.transactionEnded(ticket(2), origin, .neutral, now: at(5))
        #expect(gate.requestAdmission(ticket(3), at: origin, now: at(5)) == .open)
    }

    @Test("A client has a quota of slots and queue, beyond which others are served first")
    func clients() {
        var gate = OriginAdmission(
            settings: OriginAdmission.Settings(
                connectionsMax: 4, queueMax: 4,
                circuit: CircuitLimits(failures: nil, openInterval: .seconds(5)), clientPercent: 50,
                uploadPercent: 25))
        let bad = [QuotaHolder.client(.v4(1))]
        let good = [QuotaHolder.client(.v4(2))]
        for number in 1...2 {
            #expect(
                gate.requestAdmission(ticket(UInt64(number)), for: bad, at: origin, now: at(0))
                    == .open)
        }
        for number in 3...4 {
            let admission = gate.requestAdmission(
                ticket(UInt64(number)), for: bad, at: origin, now: at(0))
            #expect(admission == .wait(closingIdleOnLoop: nil))
        }
        let last = gate.requestAdmission(ticket(5), for: bad, at: origin, now: at(0))
        #expect(last == .refused(.quotaExhausted))
        #expect(gate.requestAdmission(ticket(6), for: good, at: origin, now: at(0)) == .open)
        // A connection that becomes free serves a fetch short of a slot, not of a quota.
        #expect(gate.requestAdmission(ticket(7), for: good, at: origin, now: at(0)) == .open)
        _ = gate.transactionEnded(ticket(7), origin, .succeeded, now: at(0))
        #expect(gate.connectionReleased(origin, on: 0) == .keep)
        _ = gate.transactionEnded(ticket(1), origin, .succeeded, now: at(0))
        #expect(gate.connectionReleased(origin, on: 0) == .assign(ticket(3)))
        // A connection that is not released no longer counts towards the quota either.
        let ended = gate.transactionEnded(ticket(2), origin, .neutral, now: at(0), releases: false)
        #expect(ended.updates.isEmpty)
        #expect(gate.connectionClosed(origin) == .granted(ticket(4), origin))
    }

    @Test("The waiting client with the fewest connections is served first")
    func fewest() {
        var gate = gate(connections: 3, queue: 9, failures: nil)
        let busy = [QuotaHolder.client(.v4(1))]
        let idle = [QuotaHolder.client(.v4(2))]
        for number in 1...5 {
            _ = gate.requestAdmission(ticket(UInt64(number)), for: busy, at: origin, now: at(0))
        }
        for number in 6...7 {
            _ = gate.requestAdmission(ticket(UInt64(number)), for: idle, at: origin, now: at(0))
        }
        func next(after fetch: UInt64) -> OriginAdmission.ReleaseDecision {
            _ = gate.transactionEnded(ticket(fetch), origin, .succeeded, now: at(0))
            return gate.connectionReleased(origin, on: 0)
        }
        // One client has two left, the other one; then they alternate.
        #expect(next(after: 1) == .assign(ticket(6)))
        #expect(next(after: 2) == .assign(ticket(4)))
        #expect(next(after: 4) == .assign(ticket(5)))
        #expect(next(after: 6) == .assign(ticket(7)))
    }

    @Test("Requests with bodies have a quota of an origin's slots")
    func uploads() {
        var gate = OriginAdmission(
            settings: OriginAdmission.Settings(
                connectionsMax: 4, queueMax: 4,
                circuit: CircuitLimits(failures: nil, openInterval: .seconds(5)), uploadPercent: 50)
        )
        for number in 1...2 {
            let admission = gate.requestAdmission(
                ticket(UInt64(number)), for: [.uploads], at: origin, now: at(0))
            #expect(admission == .open)
        }
        let third = gate.requestAdmission(ticket(3), for: [.uploads], at: origin, now: at(0))
        #expect(third == .wait(closingIdleOnLoop: nil))
        #expect(gate.requestAdmission(ticket(4), at: origin, now: at(0)) == .open)
        #expect(gate.isContended(origin))
        gate.requestCancelled(ticket(3), origin)
        #expect(!gate.isContended(origin))
    }

    @Test("Higher limits admit waiting fetches")
    func adopted() {
        var gate = gate(connections: 1)
        for number in 1...3 {
            _ = gate.requestAdmission(ticket(UInt64(number)), at: origin, now: at(0))
        }
        var settings = gate.settings
        settings.connectionsMax = 5
        #expect(
            gate.reconfigure(settings) == [
                .granted(ticket(2), origin), .granted(ticket(3), origin),
            ])
        #expect(gate.statuses(now: at(0)).map(\.connections) == [3])
    }
}
