import Ground
import Origin
import Testing

@Suite("The circuit of an origin")
struct CircuitBreakerTests {
    let limits = CircuitLimits(failures: 3, pause: .seconds(5))

    private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    /// A circuit that opened at 0 s.
    private func opened() -> CircuitBreaker {
        var circuit = CircuitBreaker()
        for _ in 1...3 { _ = circuit.failed(limits: limits, now: at(0)) }
        return circuit
    }

    @Test("It opens at the last of so many failures in succession")
    func opens() {
        var circuit = CircuitBreaker()
        #expect(circuit.failed(limits: limits, now: at(0)) == false)
        #expect(circuit.failed(limits: limits, now: at(0)) == false)
        circuit.succeeded()
        #expect(circuit.failed(limits: limits, now: at(0)) == false)
        #expect(circuit.failed(limits: limits, now: at(0)) == false)
        #expect(circuit.arrived(now: at(0)) == .go)
        let opens = circuit.failed(limits: limits, now: at(0))
        #expect(opens)
        #expect(circuit.arrived(now: at(1)) == .refused(retryAfter: .seconds(4)))
    }

    @Test("After its time one fetch tries, and all others are refused until that is decided")
    func oneTrial() {
        var circuit = opened()
        #expect(circuit.arrived(now: at(5)) == .trial)
        #expect(circuit.arrived(now: at(5)) == .refused(retryAfter: .seconds(1)))
        let closes = circuit.answered(limits: limits)
        #expect(closes)
        #expect(circuit.arrived(now: at(5)) == .go)
    }

    @Test("A trial that is answered but not to the end opens it again; a whole answer does not")
    func trialDecides() {
        var circuit = opened()
        _ = circuit.arrived(now: at(5))
        _ = circuit.answered(limits: limits)
        var whole = circuit
        let opensAgain = circuit.failed(limits: limits, now: at(6))
        #expect(opensAgain)
        whole.succeeded()
        #expect(whole.isQuiet)
        let opens = whole.failed(limits: limits, now: at(6))
        #expect(opens == false)
    }

    @Test("Trials that fail come less and less often, up to ten times the first pause")
    func pausesGrow() {
        var circuit = opened()
        var now = at(0)
        var pauses: [Int64] = []
        for _ in 1...6 {
            guard case .refused(let pause) = circuit.arrived(now: now) else { break }
            pauses.append(pause.seconds)
            now = now + pause
            #expect(circuit.arrived(now: now) == .trial)
            _ = circuit.failed(limits: limits, now: now)
        }
        #expect(pauses == [5, 10, 20, 40, 50, 50])
    }

    @Test("A trial that says nothing leaves the next fetch to try")
    func trialAbandoned() {
        var circuit = opened()
        _ = circuit.arrived(now: at(5))
        circuit.trialAbandoned(now: at(5))
        #expect(circuit.arrived(now: at(5)) == .trial)
    }

    @Test("Without a number of failures it never opens")
    func off() {
        var circuit = CircuitBreaker()
        let never = CircuitLimits(failures: nil, pause: .seconds(5))
        for _ in 1...1000 {
            let opens = circuit.failed(limits: never, now: at(0))
            #expect(opens == false)
        }
        #expect(circuit.arrived(now: at(0)) == .go)
    }
}
