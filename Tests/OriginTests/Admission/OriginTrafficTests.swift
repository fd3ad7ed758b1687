import Ground
import Origin
import Telemetry
import Testing

@Suite("What is known of the requests to an origin")
struct OriginTrafficTests {
    private let origin = OriginAuthority(host: "a.example", port: 80)

    private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    private func refused(_ reason: String) -> OriginFailure {
        .connectFailed(origin, reason: reason)
    }

    @Test("Requests are counted by their end, failures by reason, and the last one is kept")
    func counts() {
        var traffic = OriginTraffic()
        traffic.record(.complete, status: 200, bodyBytes: 10, now: at(1))
        traffic.record(.failed(refused("Connection refused")), now: at(2))
        traffic.record(.failed(.truncated(expected: 9, received: 4)), bodyBytes: 4, now: at(3))
        traffic.record(.abandoned, status: 200, bodyBytes: 3, now: at(4))
        #expect(traffic.fetches == 3 && traffic.failed == 2 && traffic.receivedBytes == 17)
        #expect(
            traffic.failures == [.originFailuresConnect: 1, .originFailuresBroken: 1])
        #expect(traffic.lastFailure?.metric == .originFailuresBroken)
        #expect(traffic.lastFailure?.at == at(3))
        // A refusal by the circuit has no cause of its own.
        traffic.record(.failed(.circuitOpen(origin, retryAfter: .seconds(1))), now: at(5))
        #expect(traffic.failed == 3 && traffic.lastFailure?.metric == .originFailuresBroken)
    }

    @Test("A 5xx counts as bad, also if nobody reads the rest")
    func serverErrors() {
        var traffic = OriginTraffic()
        traffic.record(.complete, status: 503, now: at(1))
        traffic.record(.abandoned, status: 500, now: at(1))
        traffic.record(.complete, status: 404, now: at(1))
        let outcomes = traffic.outcomes(slots: 1, now: at(1))
        #expect(outcomes.bad == 2 && outcomes.complete == 3)
    }

    @Test("Outcomes are forgotten after a minute, and once the origin has recovered")
    func outcomes() {
        var traffic = OriginTraffic()
        for second in 0..<30 { traffic.record(.failed(refused("r")), now: at(Int64(second))) }
        traffic.recordRefusal(now: at(29))
        #expect(traffic.outcomes(slots: 6, now: at(29)).bad == 31)
        #expect(traffic.outcomes(slots: 1, now: at(29)).bad == 21)
        #expect(traffic.outcomes(slots: 6, now: at(75)).failed == 20)
        #expect(traffic.outcomes(slots: 6, now: at(500)) == OriginTraffic.Outcomes())
        traffic.record(.complete, status: 200, now: at(500))
        #expect(traffic.outcomes(slots: 6, now: at(500)).all == 1)
        traffic.forgetOutcomes()
        #expect(traffic.outcomes(slots: 6, now: at(500)).all == 0 && traffic.failed == 30)
    }

    @Test("A failure's text is bounded")
    func longTexts() {
        var traffic = OriginTraffic()
        let long = String(repeating: "x", count: 10_000)
        traffic.record(.failed(refused(long)), now: at(1))
        #expect((traffic.lastFailure?.detail.utf8.count ?? .max) <= 240)
    }

    @Test("The origins are bounded; those that the operator named are the last to go")
    func bounded() {
        var table = OriginTrafficTable()
        let named = OriginAuthority(host: "site.example", port: 80, isOperatorConfigured: true)
        table.update(named) { $0.record(.complete, status: 200, now: at(0)) }
        for number in 1...Int64(5_000) {
            let other = OriginAuthority(host: "\(number).example", port: 80)
            table.update(other) { $0.record(.complete, status: 200, now: at(number)) }
            #expect(table.origins.count <= OriginTrafficTable.originsMax)
        }
        #expect(table[named].fetches == 1)
        #expect(table[OriginAuthority(host: "5000.example", port: 80)].fetches == 1)
        #expect(table[OriginAuthority(host: "1.example", port: 80)].fetches == 0)
    }
}
