import Cluster
import Ground
import Testing

@Suite("What is offered")
struct OfferIntakeTests {
    private let left = ConnectionID(1)
    private let right = ConnectionID(2)
    private let start = Instant(nanoseconds: 0)

    private func offer(_ number: UInt64, size: UInt64 = 100) -> PeerOffer {
        PeerOffer(
            digest: EntryDigest(first: number, second: ~number), size: size, touches: 1,
            isNew: false)
    }

    private func answer(
        _ number: UInt64, _ isKept: Bool, on connection: ConnectionID
    ) -> OfferIntake.Answer {
        OfferIntake.Answer(
            connection: connection,
            verdict: OfferVerdict(digest: offer(number).digest, isKept: isKept))
    }

    @Test("what is held is said at once; what is wanted is fetched, and answered then")
    func usual() {
        var intake = OfferIntake()
        let said = intake.offered([offer(1), offer(2)], on: left, now: start) {
            $0 == offer(1) ? .held : .wanted
        }
        #expect(said == [answer(1, true, on: left)])
        let next = intake.next(now: start) { _ in .wanted }
        #expect(next.fetches.map(\.offer) == [offer(2)] && next.answers.isEmpty)
        #expect(intake.ended(offer(2).digest, .kept, now: start) == [answer(2, true, on: left)])
        #expect(intake.count == 0 && intake.takingCount == 0 && !intake.waits)
    }

    @Test("what was fetched while it waited for its turn is not fetched again")
    func judgedAgain() {
        var intake = OfferIntake()
        _ = intake.offered([offer(1)], on: left, now: start) { _ in .wanted }
        let next = intake.next(now: start) { _ in .held }
        #expect(next.fetches.isEmpty && next.answers == [answer(1, true, on: left)])
    }

    @Test("a ring that lags behind the giver's is waited for, and not for long")
    func lag() {
        var intake = OfferIntake()
        let said = intake.offered([offer(1), offer(2)], on: left, now: start) { _ in .unwanted }
        #expect(said.isEmpty)
        let soon = intake.next(now: start + .seconds(1)) { $0 == offer(1) ? .wanted : .unwanted }
        #expect(soon.fetches.map(\.offer) == [offer(1)] && soon.answers.isEmpty)
        let late = intake.next(now: start + OfferIntake.lag) { _ in .unwanted }
        #expect(late.fetches.isEmpty && late.answers == [answer(2, false, on: left)])
    }

    @Test("what two offer is fetched from one, and from the other if that brings nothing")
    func twice() {
        var intake = OfferIntake()
        for line in [left, right] {
            _ = intake.offered([offer(1)], on: line, now: start) { _ in .wanted }
        }
        #expect(intake.next(now: start) { _ in .wanted }.fetches.count == 1)
        #expect(intake.ended(offer(1).digest, .refused, now: start) == [answer(1, false, on: left)])
        #expect(intake.next(now: start) { _ in .wanted }.fetches.map(\.connection) == [right])
        _ = intake.offered([offer(1)], on: left, now: start) { _ in .wanted }
        _ = intake.next(now: start) { _ in .wanted }
        #expect(
            intake.ended(offer(1).digest, .kept, now: start)
                == [answer(1, true, on: right), answer(1, true, on: left)])
    }

    @Test("of what its giver has no more nothing is left; another that offers it is asked")
    func gone() {
        var intake = OfferIntake()
        for line in [left, right] {
            _ = intake.offered([offer(1)], on: line, now: start) { _ in .wanted }
        }
        _ = intake.next(now: start) { _ in .wanted }
        #expect(intake.ended(offer(1).digest, .gone, now: start) == [answer(1, true, on: left)])
        #expect(intake.next(now: start) { _ in .wanted }.fetches.map(\.connection) == [right])
    }

    @Test("what fails is tried again in a while, and refused when it has failed often")
    func failing() {
        var intake = OfferIntake()
        _ = intake.offered([offer(1)], on: left, now: start) { _ in .wanted }
        var now = start
        for _ in 1..<OfferIntake.failuresMax {
            #expect(intake.next(now: now) { _ in .wanted }.fetches.count == 1)
            #expect(intake.ended(offer(1).digest, .failed, now: now).isEmpty)
            #expect(intake.next(now: now) { _ in .wanted }.fetches.isEmpty)
            now = now + OfferIntake.retryTime
        }
        #expect(intake.next(now: now) { _ in .wanted }.fetches.count == 1)
        let last = intake.ended(offer(1).digest, .failed, now: now)
        #expect(last == [answer(1, false, on: left)] && !intake.waits)
    }

    @Test("of two that have just fetched the same, both are asked")
    func bothNew() {
        var intake = OfferIntake()
        var new = offer(1)
        new.isNew = true
        for line in [left, right] {
            _ = intake.offered([new], on: line, now: start) { _ in .wanted }
        }
        #expect(intake.next(now: start) { _ in .wanted }.fetches.count == 1)
        #expect(intake.ended(new.digest, .kept, now: start) == [answer(1, true, on: left)])
        #expect(intake.next(now: start) { _ in .wanted }.fetches.map(\.connection) == [right])
    }

    @Test("so many are fetched at once, and so many bytes, unless one alone is more")
    func bounds() {
        var intake = OfferIntake()
        let small = (0..<20).map { offer($0) }
        _ = intake.offered(small, on: left, now: start) { _ in .wanted }
        #expect(intake.next(now: start) { _ in .wanted }.fetches.count == OfferIntake.takingMax)
        #expect(intake.next(now: start) { _ in .wanted }.fetches.isEmpty)
        _ = intake.ended(offer(0).digest, .kept, now: start)
        #expect(intake.next(now: start) { _ in .wanted }.fetches.count == 1)

        var large = OfferIntake()
        let bodies = (0..<3).map { offer($0, size: OfferIntake.takingBytesMax * 3) }
        _ = large.offered(bodies, on: left, now: start) { _ in .wanted }
        #expect(large.next(now: start) { _ in .wanted }.fetches.count == 1)
        _ = large.ended(offer(0).digest, .kept, now: start)
        #expect(large.next(now: start) { _ in .wanted }.fetches.count == 1)
    }

    @Test("more than may wait is refused at once")
    func full() {
        var intake = OfferIntake()
        let all = (0...UInt64(OfferIntake.waitingMax)).map { offer($0) }
        let said = intake.offered(all, on: left, now: start) { _ in .wanted }
        #expect(said == [answer(UInt64(OfferIntake.waitingMax), false, on: left)])
        #expect(intake.offered([offer(5)], on: right, now: start) { _ in .wanted }.isEmpty)
    }

    @Test("what a connection that is gone has offered is neither fetched nor answered")
    func closed() {
        var intake = OfferIntake()
        _ = intake.offered([offer(1), offer(2)], on: left, now: start) {
            $0 == offer(1) ? .wanted : .unwanted
        }
        _ = intake.offered([offer(3)], on: right, now: start) { _ in .wanted }
        intake.closed(left)
        let next = intake.next(now: start + OfferIntake.lag) { _ in .wanted }
        #expect(next.fetches.map(\.offer) == [offer(3)] && next.answers.isEmpty)
        intake.closed(right)
        #expect(intake.ended(offer(3).digest, .kept, now: start).isEmpty)
        #expect(intake.count == 0 && !intake.waits)
    }
}
