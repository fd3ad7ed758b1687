import Ground
import Origin
import Testing
import Wire

@Suite("The transaction state machine with TLS and shared connections")
struct TransactionStateMachineTLSTests {
    let origin = OriginAuthority(host: "a.example", port: 443, isSecure: true)
    let addressGuard = AddressGuard()
    let first = IPAddress.v4(0x0808_0808)
    let second = IPAddress.v4(0x0101_0101)

    private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    private func machine(hasBody: Bool = false, isSafeToRetry: Bool = true)
        -> TransactionStateMachine
    {
        var settings = OriginSettings()
        settings.connectLimit = .seconds(10)
        settings.headLimit = .seconds(20)
        settings.queueLimit = .seconds(7)
        return TransactionStateMachine(
            origin: origin, settings: settings, totalDeadline: at(100), hasBody: hasBody,
            isSafeToRetry: isSafeToRetry)
    }

    /// A machine in the TLS handshake with `first` since 0 s; `second` has not been tried.
    private func handshaking() -> TransactionStateMachine {
        var machine = machine()
        _ = machine.connectionSlotGranted(now: at(0))
        _ = machine.resolved([first, second], addressGuard: addressGuard, now: at(0))
        let effect = machine.attemptConnected(
            1, to: .address(first), addressGuard: addressGuard, now: at(0))
        #expect(effect == .startTLS(attempt: 1))
        return machine
    }

    private func failure(_ cause: TLSFailureCause) -> TLSFailure { TLSFailure(cause, as: .client) }

    @Test("The request is sent when TLS is established")
    func secured() {
        var machine = handshaking()
        #expect(machine.tlsEstablished(1, now: at(1)) == .sendRequest(attempt: 1))
        #expect(machine.deadline == at(21))
    }

    @Test("A certificate that fails a check ends the fetch")
    func certificate() {
        var machine = handshaking()
        #expect(
            machine.handshakeFailed(1, failure(.selfSigned), now: at(1))
                == .fail(.tls(origin, failure(.selfSigned))))
    }

    @Test("Another failure of the handshake is followed by the next address; the last is reported")
    func handshakeFails() {
        var machine = handshaking()
        #expect(
            machine.handshakeFailed(1, failure(.truncated), now: at(1))
                == .connect(.address(second), attempt: 2, cancelling: nil))
        _ = machine.attemptConnected(
            2, to: .address(second), addressGuard: addressGuard, now: at(1))
        #expect(
            machine.handshakeFailed(2, failure(.alert(40)), now: at(2))
                == .fail(.tls(origin, failure(.alert(40)))))
    }

    @Test("A handshake is raced after a delay, and not cancelled before the connect limit")
    func raced() {
        var machine = handshaking()
        #expect(machine.deadline == at(0) + HappyEyeballs.handshakeDelay)
        #expect(machine.ticked(now: at(1)) == .wait)
        #expect(
            machine.ticked(now: at(2)) == .connect(.address(second), attempt: 2, cancelling: nil))
        #expect(
            machine.ticked(now: at(10)) == .fail(.timedOut(.handshaking, limit: .seconds(10))))
    }

    @Test("A third address replaces an attempt without a connection")
    func givenUp() {
        var race = HappyEyeballs([.address(first), .address(second), .name])
        _ = race.start(now: at(0))
        race.attemptConnected(1, now: at(0))
        #expect(race.ticked(now: at(2)) == .connect(.address(second), attempt: 2, cancelling: nil))
        #expect(race.ticked(now: at(3)) == .connect(.name, attempt: 3, cancelling: 2))
    }

    @Test("Waiting for another fetch's connection is limited by the queue time")
    func awaited() {
        var machine = machine()
        #expect(machine.connectionAwaited(now: at(0)) == .wait)
        #expect(machine.deadline == at(10))
        var late = machine
        #expect(late.ticked(now: at(10)) == .fail(.overloaded(.queueTime)))
        #expect(
            machine.connectionReused(isShared: true, now: at(1)) == .sendRequest(attempt: nil))
    }

    @Test("A shared connection that ends before the response is replaced, once")
    func sharedEnds() {
        var machine = machine()
        _ = machine.connectionReused(isShared: true, now: at(0))
        #expect(machine.inputClosed(.truncated, now: at(1)) == .restart)
        #expect(machine.deadline == at(100))
        _ = machine.connectionReused(isShared: true, now: at(1))
        #expect(
            machine.inputClosed(.truncated, now: at(2))
                == .fail(.closedBeforeResponse(bytesReceived: 0)))
    }

    @Test("A refused stream is retried once, whatever the method")
    func refused() {
        var machine = machine(isSafeToRetry: false)
        _ = machine.connectionReused(isShared: true, now: at(0))
        #expect(machine.streamRefused(now: at(1)) == .restart)
        _ = machine.connectionReused(isShared: true, now: at(1))
        let failure = OriginFailure.http2(.refusedStream, byOrigin: true)
        #expect(machine.streamRefused(now: at(2)) == .fail(failure))
    }

    @Test("A refused stream is not retried once part of the body was sent")
    func refusedAfterBody() {
        var machine = machine(hasBody: true, isSafeToRetry: false)
        _ = machine.connectionReused(isShared: true, now: at(0))
        machine.requestBodyProgressed(.writing, now: at(0))
        let failure = OriginFailure.http2(.refusedStream, byOrigin: true)
        #expect(machine.streamRefused(now: at(1)) == .fail(failure))
    }

    @Test(
        "The end of input in a body delimited by close",
        arguments: [
            (InputCloseReason.orderly, TransactionEffect.finish(delimitedByClose: true)),
            (.reset, .fail(.reset(received: 3))),
            (.truncated, .fail(.closedWithoutNotify(received: 3))),
            (
                .http2(.internalError, byOrigin: true),
                .fail(.http2(.internalError, byOrigin: true))
            ),
        ])
    func ends(end: InputCloseReason, effect: TransactionEffect) {
        var machine = handshaking()
        _ = machine.tlsEstablished(1, now: at(0))
        _ = machine.responseHeadReceived(.untilClose, now: at(0))
        _ = machine.bodyReceived(3)
        #expect(machine.inputClosed(end, now: at(1)) == effect)
    }
}
