import Cluster
import Ground
import Testing

@Suite("What is offered")
struct InboundOffersTests {
    private let left = ConnectionID(1)
    private let right = ConnectionID(2)
    private let start = Instant(nanoseconds: 0)

    private func offer(_ number: UInt64, size: UInt64 = 100) -> PeerOffer {
        PeerOffer(
            digest: EntryDigest(first: number, second: ~number), size: size, touches: 1,
            isJustFetched: false)
    }

    private func answer(
        _ number: UInt64, _ isKept: Bool, on connection: ConnectionID
    ) -> InboundOffers.Reply {
        InboundOffers.Reply(
            connection: connection,
            outcome: OfferOutcome(digest: offer(number).digest, isStored: isKept))
    }

    @Test("what is held is said at once; what is wanted is fetched, and answered then")
    func usual() {
        var intake = InboundOffers()
        let said = intake.offersReceived([offer(1), offer(2)], on: left, now: start) {
            $0 == offer(1) ? .alreadyStored : .accepted
        }
        #expect(said == [answer(1, true, on: left)])
        let next = intake.next(now: start) { _ in .accepted }
        #expect(next.fetches.map(\.offer) == [offer(2)] && next.responses.isEmpty)
        #expect(
            intake.transferEnded(offer(2).digest, .stored, now: start) == [
                answer(2, true, on: left)
            ])
        #expect(intake.count == 0 && intake.transferCount == 0 && !intake.hasWaiting)
    }

    @Test("what was fetched while it waited for its turn is not fetched again")
    func judgedAgain() {
        var intake = InboundOffers()
        _ = intake.offersReceived([offer(1)], on: left, now: start) { _ in .accepted }
        let next = intake.next(now: start) { _ in .alreadyStored }
        #expect(next.fetches.isEmpty && next.responses == [answer(1, true, on: left)])
    }

    @Test("a ring that lags behind the giver's is waited for, and not for long")
    func lag() {
        var intake = InboundOffers()
        let said = intake.offersReceived([offer(1), offer(2)], on: left, now: start) { _ in
            .notOwned
        }
        #expect(said.isEmpty)
        let soon = intake.next(now: start + .seconds(1)) { $0 == offer(1) ? .accepted : .notOwned }
        #expect(soon.fetches.map(\.offer) == [offer(1)] && soon.responses.isEmpty)
        let late = intake.next(now: start + InboundOffers.ringLagMax) { _ in .notOwned }
        #expect(late.fetches.isEmpty && late.responses == [answer(2, false, on: left)])
    }

    @Test("what two offer is fetched from one, and from the other if that brings nothing")
    func twice() {
        var intake = InboundOffers()
        for line in [left, right] {
            _ = intake.offersReceived([offer(1)], on: line, now: start) { _ in .accepted }
        }
        #expect(intake.next(now: start) { _ in .accepted }.fetches.count == 1)
        #expect(
            intake.transferEnded(offer(1).digest, .rejected, now: start) == [
                answer(1, false, on: left)
            ])
        #expect(intake.next(now: start) { _ in .accepted }.fetches.map(\.connection) == [right])
        _ = intake.offersReceived([offer(1)], on: left, now: start) { _ in .accepted }
        _ = intake.next(now: start) { _ in .accepted }
        #expect(
            intake.transferEnded(offer(1).digest, .stored, now: start)
                == [answer(1, true, on: right), answer(1, true, on: left)])
    }

    @Test("of what its giver has no more nothing is left; another that offers it is asked")
    func gone() {
        var intake = InboundOffers()
        for line in [left, right] {
            _ = intake.offersReceived([offer(1)], on: line, now: start) { _ in .accepted }
        }
        _ = intake.next(now: start) { _ in .accepted }
        #expect(
            intake.transferEnded(offer(1).digest, .goneAtSender, now: start) == [
                answer(1, true, on: left)
            ])
        #expect(intake.next(now: start) { _ in .accepted }.fetches.map(\.connection) == [right])
    }

    @Test("what fails is tried again in a while, and refused when it has failed often")
    func failing() {
        var intake = InboundOffers()
        _ = intake.offersReceived([offer(1)], on: left, now: start) { _ in .accepted }
        var now = start
        for _ in 1..<InboundOffers.failuresMax {
            #expect(intake.next(now: now) { _ in .accepted }.fetches.count == 1)
            #expect(intake.transferEnded(offer(1).digest, .failed, now: now).isEmpty)
            #expect(intake.next(now: now) { _ in .accepted }.fetches.isEmpty)
            now = now + InboundOffers.retryTime
        }
        #expect(intake.next(now: now) { _ in .accepted }.fetches.count == 1)
        let last = intake.transferEnded(offer(1).digest, .failed, now: now)
        #expect(last == [answer(1, false, on: left)] && !intake.hasWaiting)
    }

    @Test("of two that have just fetched the same, both are asked")
    func bothNew() {
        var intake = InboundOffers()
        var new = offer(1)
        new.isJustFetched = true
        for line in [left, right] {
            _ = intake.offersReceived([new], on: line, now: start) { _ in .accepted }
        }
        #expect(intake.next(now: start) { _ in .accepted }.fetches.count == 1)
        #expect(
            intake.transferEnded(new.digest, .stored, now: start) == [answer(1, true, on: left)])
        #expect(intake.next(now: start) { _ in .accepted }.fetches.map(\.connection) == [right])
    }

    @Test("so many are fetched at once, and so many bytes, unless one alone is more")
    func bounds() {
        var intake = InboundOffers()
        let small = (0..<20).map { offer($0) }
        _ = intake.offersReceived(small, on: left, now: start) { _ in .accepted }
        #expect(
            intake.next(now: start) { _ in .accepted }.fetches.count == InboundOffers.transfersMax)
        #expect(intake.next(now: start) { _ in .accepted }.fetches.isEmpty)
        _ = intake.transferEnded(offer(0).digest, .stored, now: start)
        #expect(intake.next(now: start) { _ in .accepted }.fetches.count == 1)

        var large = InboundOffers()
        let bodies = (0..<3).map { offer($0, size: InboundOffers.transferBytesMax * 3) }
        _ = large.offersReceived(bodies, on: left, now: start) { _ in .accepted }
        #expect(large.next(now: start) { _ in .accepted }.fetches.count == 1)
        _ = large.transferEnded(offer(0).digest, .stored, now: start)
        #expect(large.next(now: start) { _ in .accepted }.fetches.count == 1)
    }

    @Test("more than may wait is refused at once")
    func full() {
        var intake = InboundOffers()
        let all = (0...UInt64(InboundOffers.waitingMax)).map { offer($0) }
        let said = intake.offersReceived(all, on: left, now: start) { _ in .accepted }
        #expect(said == [answer(UInt64(InboundOffers.waitingMax), false, on: left)])
        #expect(intake.offersReceived([offer(5)], on: right, now: start) { _ in .accepted }.isEmpty)
    }

    @Test("what a connection that is gone has offered is neither fetched nor answered")
    func closed() {
        var intake = InboundOffers()
        _ = intake.offersReceived([offer(1), offer(2)], on: left, now: start) {
            $0 == offer(1) ? .accepted : .notOwned
        }
        _ = intake.offersReceived([offer(3)], on: right, now: start) { _ in .accepted }
        intake.connectionClosed(left)
        let next = intake.next(now: start + InboundOffers.ringLagMax) { _ in .accepted }
        #expect(next.fetches.map(\.offer) == [offer(3)] && next.responses.isEmpty)
        intake.connectionClosed(right)
        #expect(intake.transferEnded(offer(3).digest, .stored, now: start).isEmpty)
        #expect(intake.count == 0 && !intake.hasWaiting)
    }
}
