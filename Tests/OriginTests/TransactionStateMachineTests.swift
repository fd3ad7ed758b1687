import Ground
import Origin
import Testing
import Wire

@Suite("The transaction state machine")
struct TransactionStateMachineTests {
    let origin = OriginAuthority(host: "a.example", port: 80)
    let addressGuard = AddressGuard()
    let first = IPAddress.v4(0x0808_0808)
    let second = IPAddress.v4(0x0101_0101)
    let inside = IPAddress.v4(0x0A00_0001)

    func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    private func machine(rateMin: Int = 0) -> TransactionStateMachine {
        var settings = OriginSettings()
        settings.bodyRateMin = rateMin
        settings.connectLimit = .seconds(10)
        settings.headLimit = .seconds(20)
        settings.idleLimit = .seconds(5)
        settings.totalLimit = .seconds(100)
        settings.interimResponsesMax = 2
        settings.queueLimit = .seconds(7)
        settings.bodyBytesMax = 1000
        return TransactionStateMachine(origin: origin, settings: settings, totalDeadline: at(100))
    }

    /// A machine that connects to `first` since 0 s; `second` has not been tried.
    private func connecting(rateMin: Int = 0) -> TransactionStateMachine {
        var machine = machine(rateMin: rateMin)
        #expect(machine.connectionSlotGranted(now: at(0)) == .resolve)
        let effect = machine.resolved([first, second], addressGuard: addressGuard, now: at(0))
        #expect(effect == .connect(.address(first), attempt: 1, cancelling: nil))
        return machine
    }

    /// A machine whose request was sent on a new connection at 0 s.
    private func awaitingHead(rateMin: Int = 0) -> TransactionStateMachine {
        var machine = connecting(rateMin: rateMin)
        let effect = machine.attemptConnected(
            1, to: .address(first), addressGuard: addressGuard, now: at(0))
        #expect(effect == .sendRequest(attempt: 1))
        return machine
    }

    /// A machine whose final head arrived at 1 s.
    func readingBody(_ framing: BodyFraming, rateMin: Int = 0) -> TransactionStateMachine {
        var machine = awaitingHead(rateMin: rateMin)
        machine.bytesReceived(100, now: at(1))
        _ = machine.responseHeadReceived(framing, now: at(1))
        return machine
    }

    @Test("The allowed addresses are tried in order")
    func addressesInOrder() {
        var machine = machine()
        #expect(machine.connectionSlotGranted(now: at(0)) == .resolve)
        let mixed = [inside, first, inside, second]
        #expect(
            machine.resolved(mixed, addressGuard: addressGuard, now: at(0))
                == .connect(.address(first), attempt: 1, cancelling: nil))
        #expect(
            machine.attemptFailed(1, reason: "refused", now: at(1))
                == .connect(.address(second), attempt: 2, cancelling: nil))
        #expect(
            machine.attemptFailed(2, reason: "reset", now: at(2))
                == .fail(.connectFailed(origin, reason: "reset")))
        #expect(machine.isFinished)
    }

    @Test("A host whose addresses are all refused fails with the first")
    func allRefused() {
        var machine = machine()
        _ = machine.connectionSlotGranted(now: at(0))
        let effect = machine.resolved([inside], addressGuard: addressGuard, now: at(0))
        let refusal = AddressRefusal(range: .privateUse, embedding: nil)
        #expect(effect == .fail(.addressRefused(origin, inside, refusal)))
    }

    @Test("A host without addresses is not found; a failed look-up gives the reason")
    func noAddress() {
        var machine = machine()
        _ = machine.connectionSlotGranted(now: at(0))
        var other = machine
        var third = machine
        #expect(
            machine.resolved([], addressGuard: addressGuard, now: at(0))
                == .fail(.nameNotFound("a.example")))
        #expect(other.resolveFailed(.nameNotFound) == .fail(.nameNotFound("a.example")))
        #expect(
            third.resolveFailed(.failed("busy"))
                == .fail(.resolverFailed("a.example", reason: "busy")))
    }

    @Test("A connection whose remote address is refused is not used")
    func remoteJudgedAgain() {
        var machine = connecting()
        let effect = machine.attemptConnected(
            1, to: .address(inside), addressGuard: addressGuard, now: at(0))
        let refusal = AddressRefusal(range: .privateUse, embedding: nil)
        #expect(effect == .fail(.addressRefused(origin, inside, refusal)))
        var other = connecting()
        guard
            case .fail(.connectFailed) = other.attemptConnected(
                1, to: nil, addressGuard: addressGuard, now: at(0))
        else {
            Issue.record("a connection with an unknown remote address was used")
            return
        }
    }

    @Test("A slow address is raced by the next, and one limit ends all attempts")
    func attemptsRace() {
        var machine = connecting()
        let moment = at(0) + HappyEyeballs.attemptDelay
        #expect(machine.deadline == moment)
        #expect(machine.ticked(now: at(0)) == .wait)
        #expect(
            machine.ticked(now: moment) == .connect(.address(second), attempt: 2, cancelling: nil))
        #expect(machine.deadline == at(10))
        var lost = machine
        #expect(lost.attemptFailed(2, reason: "refused", now: at(1)) == .wait)
        #expect(
            lost.attemptFailed(1, reason: "reset", now: at(2))
                == .fail(.connectFailed(origin, reason: "reset")))
        var won = machine
        #expect(
            won.attemptConnected(1, to: .address(first), addressGuard: addressGuard, now: at(3))
                == .sendRequest(attempt: 1))
        #expect(won.attemptFailed(2, reason: "given up", now: at(3)) == .wait)
        #expect(
            machine.ticked(now: at(10)) == .fail(.timedOut(.connecting, limit: .seconds(10))))
    }

    @Test("A fetch waits for a slot up to the limit, and connects when it has one")
    func queueTimesOut() {
        var machine = machine()
        #expect(machine.queued(now: at(0)) == .wait)
        #expect(machine.deadline == at(7))
        var granted = machine
        #expect(granted.connectionSlotGranted(now: at(6)) == .resolve)
        #expect(granted.deadline == at(16))
        var given = machine
        #expect(given.connectionReused(now: at(6)) == .sendRequest(attempt: nil))
        #expect(machine.ticked(now: at(7)) == .fail(.overloaded(.queueTime)))
    }

    @Test("A body above the limit is refused, by its length or on arrival")
    func bodyLimit() {
        var announced = awaitingHead()
        #expect(
            announced.responseHeadReceived(.length(1001), now: at(1))
                == .fail(.bodyTooLarge(bytesMax: 1000)))
        var growing = awaitingHead()
        #expect(growing.responseHeadReceived(.chunked, now: at(1)) == .wait)
        #expect(growing.bodyReceived(1000) == .wait)
        #expect(growing.bodyReceived(1) == .fail(.bodyTooLarge(bytesMax: 1000)))
    }

    @Test("The connect limit includes the look-up")
    func resolveTimesOut() {
        var machine = machine()
        _ = machine.connectionSlotGranted(now: at(0))
        #expect(machine.deadline == at(10))
        #expect(
            machine.ticked(now: at(10)) == .fail(.timedOut(.resolving, limit: .seconds(10))))
        #expect(machine.resolved([first], addressGuard: addressGuard, now: at(11)) == .wait)
    }

    @Test("The limit on the head is not extended by its bytes or by interim responses")
    func headTimesOut() {
        var machine = awaitingHead()
        machine.bytesReceived(10, now: at(10))
        #expect(machine.interimResponseReceived(bytes: 30) == .wait)
        #expect(machine.deadline == at(20))
        #expect(
            machine.ticked(now: at(20)) == .fail(.timedOut(.awaitingHead, limit: .seconds(20))))
    }

    @Test("The idle limit restarts with every read")
    func bodyTimesOut() {
        var machine = readingBody(.chunked)
        #expect(machine.deadline == at(6))
        machine.bytesReceived(1, now: at(4))
        #expect(machine.ticked(now: at(6)) == .wait)
        #expect(machine.deadline == at(9))
        #expect(
            machine.ticked(now: at(9)) == .fail(.timedOut(.readingBody, limit: .seconds(5))))
    }

    @Test("While paused only the total limit runs; resuming restarts the idle limit")
    func paused() {
        var machine = readingBody(.chunked)
        machine.paused()
        #expect(machine.deadline == at(100))
        #expect(machine.ticked(now: at(50)) == .wait)
        machine.resumed(now: at(50))
        #expect(machine.deadline == at(55))
        machine.paused()
        #expect(machine.ticked(now: at(100)) == .fail(.timedOut(.total, limit: .seconds(100))))
    }

    @Test("More interim responses than allowed fail the fetch")
    func interimMax() {
        var machine = awaitingHead()
        #expect(machine.interimResponseReceived(bytes: 30) == .wait)
        #expect(machine.interimResponseReceived(bytes: 30) == .wait)
        #expect(
            machine.interimResponseReceived(bytes: 30) == .fail(.tooManyInterimResponses(max: 2)))
    }

    @Test("Interim responses that together exceed the limit on a head fail the fetch")
    func interimBytes() {
        var machine = awaitingHead()
        let bytesMax = OriginSettings().headBytesMax
        #expect(machine.interimResponseReceived(bytes: bytesMax) == .wait)
        #expect(
            machine.interimResponseReceived(bytes: 1) == .fail(.headTooLarge(bytesMax: bytesMax)))
    }

    /// Framing, bytes of the body so far, whether the end was orderly, and the effect.
    static let ends: [(BodyFraming, Int, orderly: Bool, TransactionEffect)] = [
        (.length(10), 9, true, .fail(.truncated(expected: 10, received: 9))),
        (.length(10), 9, false, .fail(.truncated(expected: 10, received: 9))),
        (.chunked, 9, true, .fail(.truncated(expected: nil, received: 9))),
        (.chunked, 9, false, .fail(.truncated(expected: nil, received: 9))),
        (.untilClose, 9, true, .finish(delimitedByClose: true)),
        (.untilClose, 0, true, .finish(delimitedByClose: true)),
        (.untilClose, 9, false, .fail(.reset(received: 9))),
    ]

    @Test("The effect of the end of input depends on the framing and on its kind", arguments: ends)
    func endOfInput(framing: BodyFraming, count: Int, orderly: Bool, effect: TransactionEffect) {
        var machine = readingBody(framing)
        _ = machine.bodyReceived(count)
        #expect(machine.inputClosed(orderly ? .orderly : .reset, now: at(2)) == effect)
        #expect(machine.isFinished)
    }

    @Test("A complete body ends the fetch once")
    func bodyEnds() {
        var machine = readingBody(.length(10))
        _ = machine.bodyReceived(10)
        #expect(machine.bodyEnded() == .finish(delimitedByClose: false))
        #expect(machine.bodyEnded() == .wait)
        #expect(machine.inputClosed(.orderly, now: at(2)) == .wait)
        #expect(machine.refused(.shuttingDown) == .wait)
        #expect(machine.ticked(now: at(1000)) == .wait)
        #expect(machine.deadline == .distantFuture)
    }

    @Test("A reused connection that closed before any byte is replaced once")
    func retry() {
        for orderly in [true, false] {
            var machine = machine()
            #expect(machine.connectionReused(now: at(0)) == .sendRequest(attempt: nil))
            #expect(machine.inputClosed(orderly ? .orderly : .reset, now: at(3)) == .resolve)
            #expect(machine.deadline == at(13))
            _ = machine.resolved([first], addressGuard: addressGuard, now: at(4))
            let effect = machine.attemptConnected(
                1, to: .address(first), addressGuard: addressGuard, now: at(4))
            #expect(effect == .sendRequest(attempt: 1))
            #expect(
                machine.inputClosed(orderly ? .orderly : .reset, now: at(5))
                    == .fail(.closedBeforeResponse(bytesReceived: 0)))
        }
    }

    @Test("There is no retry after a byte, on a new connection or after a timeout")
    func noRetry() {
        var begun = machine()
        _ = begun.connectionReused(now: at(0))
        begun.bytesReceived(1, now: at(1))
        #expect(
            begun.inputClosed(.orderly, now: at(2))
                == .fail(.closedBeforeResponse(bytesReceived: 1)))
        var fresh = awaitingHead()
        #expect(
            fresh.inputClosed(.reset, now: at(2))
                == .fail(.closedBeforeResponse(bytesReceived: 0)))
        var silent = machine()
        _ = silent.connectionReused(now: at(0))
        #expect(silent.ticked(now: at(20)) == .fail(.timedOut(.awaitingHead, limit: .seconds(20))))
    }

    // MARK: The request's body

    /// A machine whose request with a body was sent at 0 s.
    private func sending(isSafeToRetry: Bool = false) -> TransactionStateMachine {
        var settings = OriginSettings()
        settings.headLimit = .seconds(20)
        settings.idleLimit = .seconds(5)
        var machine = TransactionStateMachine(
            origin: origin, settings: settings, totalDeadline: at(100), hasBody: true,
            isSafeToRetry: isSafeToRetry)
        #expect(machine.connectionReused(now: at(0)) == .sendRequest(attempt: nil))
        return machine
    }

    @Test("While the caller sends nothing of the body, only the total limit runs")
    func callerIsSlow() {
        var machine = sending()
        #expect(machine.deadline == at(100))
        machine.requestBodyProgressed(.writing, now: at(30))
        #expect(machine.deadline == at(50))
        machine.requestBodyProgressed(.awaitingCaller, now: at(40))
        #expect(machine.deadline == at(100))
        #expect(machine.ticked(now: at(99)) == .wait)
    }

    @Test("An origin that reads nothing of the body is given up after the limit on the head")
    func bodyNotTaken() {
        var machine = sending()
        machine.requestBodyProgressed(.writing, now: at(10))
        machine.requestBodyProgressed(.writing, now: at(15))
        #expect(
            machine.ticked(now: at(35)) == .fail(.timedOut(.awaitingHead, limit: .seconds(20))))
    }

    @Test("The limit on the head runs from the end of the request's body")
    func bodyTaken() {
        var machine = sending()
        machine.requestBodyProgressed(.writing, now: at(10))
        machine.requestBodyProgressed(.complete, now: at(50))
        #expect(machine.deadline == at(70))
        #expect(
            machine.ticked(now: at(70)) == .fail(.timedOut(.awaitingHead, limit: .seconds(20))))
    }

    @Test("A response that began before the end of the request's body has limits from then on")
    func answeredEarly() {
        var machine = sending()
        machine.requestBodyProgressed(.writing, now: at(1))
        machine.bytesReceived(10, now: at(2))
        _ = machine.responseHeadReceived(.chunked, now: at(2))
        #expect(machine.deadline == at(7))
        machine.requestBodyProgressed(.awaitingCaller, now: at(3))
        #expect(machine.deadline == at(100))
        machine.requestBodyProgressed(.complete, now: at(60))
        #expect(machine.deadline == at(65))
        machine.paused()
        #expect(machine.deadline == at(100))
    }

    @Test("A request is repeated only if that is safe and nothing of its body was sent")
    func repeated() {
        var unsafe = sending()
        #expect(
            unsafe.inputClosed(.orderly, now: at(1))
                == .fail(.closedBeforeResponse(bytesReceived: 0)))
        var untouched = sending(isSafeToRetry: true)
        untouched.requestBodyProgressed(.awaitingCaller, now: at(1))
        #expect(untouched.inputClosed(.orderly, now: at(1)) == .resolve)
        var begun = sending(isSafeToRetry: true)
        begun.requestBodyProgressed(.writing, now: at(1))
        #expect(
            begun.inputClosed(.reset, now: at(2))
                == .fail(.closedBeforeResponse(bytesReceived: 0)))
    }

    @Test("After cancelling, no event has an effect")
    func cancelled() {
        for start in [machine(), connecting(), awaitingHead(), readingBody(.untilClose)] {
            var machine = start
            machine.cancelled()
            #expect(machine.isFinished && machine.deadline == .distantFuture)
            #expect(machine.connectionSlotGranted(now: at(1)) == .wait)
            #expect(machine.resolved([first], addressGuard: addressGuard, now: at(1)) == .wait)
            #expect(
                machine.attemptConnected(
                    1, to: .address(first), addressGuard: addressGuard, now: at(1))
                    == .wait)
            #expect(machine.attemptFailed(2, reason: "", now: at(1)) == .wait)
            #expect(machine.bodyEnded() == .wait)
            #expect(machine.responseRejected(.malformed("")) == .wait)
            #expect(machine.inputClosed(.orderly, now: at(1)) == .wait)
            #expect(machine.ticked(now: at(1000)) == .wait)
        }
    }
}
