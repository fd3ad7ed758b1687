import Ground
import Origin
import Testing

@Suite("The circuit breaker of an origin")
struct CircuitBreakerTests {
    let limits = CircuitLimits(failures: 3, openInterval: .seconds(5))
    let usual = CircuitLimits(failures: 20, openInterval: .seconds(5))

    private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    /// A circuit that opened at 0 s.
    private func opened() -> CircuitBreaker {
        var circuit = CircuitBreaker()
        for _ in 1...3 { _ = circuit.recordFailure(.connection, limits: limits, now: at(0)) }
        return circuit
    }

    /// True if failing responses for these paths at `instant` open the circuit.
    private func fail(
        _ paths: [UInt64], at instant: Instant, _ circuit: inout CircuitBreaker
    ) -> Bool {
        paths.contains { circuit.recordFailure(.response(path: $0), limits: usual, now: instant) }
    }

    @Test("The circuit opens at the limit of consecutive failed connections")
    func opens() {
        var circuit = CircuitBreaker()
        let first = circuit.recordFailure(.connection, limits: limits, now: at(0))
        let second = circuit.recordFailure(.connection, limits: limits, now: at(0))
        _ = circuit.responseReceived()
        let third = circuit.recordFailure(.connection, limits: limits, now: at(0))
        let fourth = circuit.recordFailure(.connection, limits: limits, now: at(0))
        #expect([first, second, third, fourth] == [false, false, false, false])
        #expect(circuit.admit(limits: limits, now: at(0)) == .allowed)
        let opens = circuit.recordFailure(.connection, limits: limits, now: at(0))
        #expect(opens)
        #expect(circuit.admit(limits: limits, now: at(1)) == .refused(retryAfter: .seconds(4)))
    }

    @Test("Failing responses for fewer than five URLs never open the circuit")
    func fewURLs() {
        var circuit = CircuitBreaker()
        let isOpenedByOne = fail(Array(repeating: 1, count: 10_000), at: at(0), &circuit)
        #expect(!isOpenedByOne)
        let isOpenedByFour = fail((0..<10_000).map { $0 % 4 }, at: at(0), &circuit)
        #expect(!isOpenedByFour)
        let isOpenedByAnother = fail([9], at: at(0), &circuit)
        #expect(isOpenedByAnother)
    }

    @Test("Failing responses open the circuit if they are half of all within ten seconds")
    func ratio() {
        var circuit = CircuitBreaker()
        let isOpenedEarly = fail(Array(0..<19), at: at(0), &circuit)
        #expect(!isOpenedEarly)
        for _ in 0..<22 { circuit.recordSuccess(now: at(5)) }
        let isOpenedByFewer = fail([19, 20], at: at(9), &circuit)
        #expect(!isOpenedByFewer)
        let isOpenedByHalf = fail([21], at: at(9), &circuit)
        #expect(isOpenedByHalf)
        // Earlier ones do not count.
        var slow = CircuitBreaker()
        let isOpenedSlowly = (0..<1_000).contains { second in
            fail([UInt64(second)], at: at(Int64(second)), &slow)
        }
        #expect(!isOpenedSlowly)
    }

    @Test("After the interval three trials run, and others are refused until these end")
    func trials() {
        var circuit = opened()
        for _ in 1...3 { #expect(circuit.admit(limits: limits, now: at(5)) == .trial) }
        #expect(circuit.admit(limits: limits, now: at(5)) == .refused(retryAfter: .seconds(1)))
        let closes = circuit.responseReceived()
        #expect(closes)
        #expect(circuit.admit(limits: limits, now: at(5)) == .allowed)
    }

    @Test("One URL that fails in all trials does not keep the circuit open; three do")
    func trialsOfOneURL() {
        var circuit = opened()
        #expect(circuit.admit(limits: limits, now: at(5)) == .trial)
        for _ in 1...100 {
            #expect(circuit.admit(limits: limits, now: at(5)) == .trial)
            let opens = circuit.recordFailure(.response(path: 1), limits: limits, now: at(5))
            #expect(!opens)
        }
        let second = circuit.recordFailure(.response(path: 2), limits: limits, now: at(5))
        #expect(!second)
        #expect(circuit.admit(limits: limits, now: at(5)) == .trial)
        var answered = circuit
        let third = circuit.recordFailure(.response(path: 3), limits: limits, now: at(5))
        #expect(third)
        let closes = answered.responseReceived()
        #expect(closes)
        answered.recordSuccess(now: at(5))
        #expect(answered.hasNoHistory)
    }

    @Test("Failing trials increase the interval, up to tenfold")
    func pausesGrow() {
        var circuit = opened()
        var now = at(0)
        var pauses: [Int64] = []
        for _ in 1...6 {
            guard case .refused(let pause) = circuit.admit(limits: limits, now: now) else {
                break
            }
            pauses.append(pause.seconds)
            now = now + pause
            #expect(circuit.admit(limits: limits, now: now) == .trial)
            // A failed connection needs no second failure.
            _ = circuit.recordFailure(.connection, limits: limits, now: now)
        }
        #expect(pauses == [5, 10, 20, 40, 50, 50])
    }

    @Test("A trial without a result leaves its place to another")
    func trialAbandoned() {
        var circuit = opened()
        for _ in 1...3 { _ = circuit.admit(limits: limits, now: at(5)) }
        circuit.trialAbandoned()
        #expect(circuit.admit(limits: limits, now: at(5)) == .trial)
        #expect(circuit.admit(limits: limits, now: at(5)) != .trial)
    }

    @Test("Without a limit on failures the circuit never opens")
    func off() {
        var circuit = CircuitBreaker()
        let never = CircuitLimits(failures: nil, openInterval: .seconds(5))
        for number in 1...1000 {
            let failure: CircuitBreaker.Failure =
                number % 2 == 0 ? .connection : .response(path: UInt64(number))
            let opens = circuit.recordFailure(failure, limits: never, now: at(0))
            #expect(opens == false)
        }
        #expect(circuit.admit(limits: never, now: at(0)) == .allowed)
    }
}
