import Cluster
import Ground
import Testing

@Suite("Offers received from peers")
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

    @Test("An offer of a stored entry is answered at once; a wanted one is fetched, then answered")
    func usual() {
        var inbound = InboundOffers()
        let replies = inbound.offersReceived([offer(1), offer(2)], on: left, now: start) {
            $0 == offer(1) ? .alreadyStored : .accepted
        }
        #expect(replies == [answer(1, true, on: left)])
        let next = inbound.next(now: start) { _ in .accepted }
        #expect(next.fetches.map(\.offer) == [offer(2)] && next.responses.isEmpty)
        #expect(
            inbound.transferEnded(offer(2).digest, .stored, now: start) == [
                answer(2, true, on: left)
            ])
        #expect(inbound.count == 0 && inbound.transferCount == 0 && !inbound.hasWaiting)
    }

    @Test("An entry that arrived while its offer waited is not fetched again")
    func judgedAgain() {
        var inbound = InboundOffers()
        _ = inbound.offersReceived([offer(1)], on: left, now: start) { _ in .accepted }
        let next = inbound.next(now: start) { _ in .alreadyStored }
        #expect(next.fetches.isEmpty && next.responses == [answer(1, true, on: left)])
    }

    @Test("An offer waits briefly if the receiver's ring lags behind the sender's")
    func lag() {
        var inbound = InboundOffers()
        let replies = inbound.offersReceived([offer(1), offer(2)], on: left, now: start) { _ in
            .notOwned
        }
        #expect(replies.isEmpty)
        let soon = inbound.next(now: start + .seconds(1)) { $0 == offer(1) ? .accepted : .notOwned }
        #expect(soon.fetches.map(\.offer) == [offer(1)] && soon.responses.isEmpty)
        let late = inbound.next(now: start + InboundOffers.ringLagMax) { _ in .notOwned }
        #expect(late.fetches.isEmpty && late.responses == [answer(2, false, on: left)])
    }

    @Test("An entry offered by two is fetched from one, and from the other if that fails")
    func twice() {
        var inbound = InboundOffers()
        for line in [left, right] {
            _ = inbound.offersReceived([offer(1)], on: line, now: start) { _ in .accepted }
        }
        #expect(inbound.next(now: start) { _ in .accepted }.fetches.count == 1)
        #expect(
            inbound.transferEnded(offer(1).digest, .rejected, now: start) == [
                answer(1, false, on: left)
            ])
        #expect(inbound.next(now: start) { _ in .accepted }.fetches.map(\.connection) == [right])
        _ = inbound.offersReceived([offer(1)], on: left, now: start) { _ in .accepted }
        _ = inbound.next(now: start) { _ in .accepted }
        #expect(
            inbound.transferEnded(offer(1).digest, .stored, now: start)
                == [answer(1, true, on: right), answer(1, true, on: left)])
    }

    @Test("If the sender no longer has the entry, another one that offers it is asked")
    func gone() {
        var inbound = InboundOffers()
        for line in [left, right] {
            _ = inbound.offersReceived([offer(1)], on: line, now: start) { _ in .accepted }
        }
        _ = inbound.next(now: start) { _ in .accepted }
        #expect(
            inbound.transferEnded(offer(1).digest, .goneAtSender, now: start) == [
                answer(1, true, on: left)
            ])
        #expect(inbound.next(now: start) { _ in .accepted }.fetches.map(\.connection) == [right])
    }

    @Test("A failed transfer is retried later, and refused after several failures")
    func failing() {
        var inbound = InboundOffers()
        _ = inbound.offersReceived([offer(1)], on: left, now: start) { _ in .accepted }
        var now = start
        for _ in 1..<InboundOffers.failuresMax {
            #expect(inbound.next(now: now) { _ in .accepted }.fetches.count == 1)
            #expect(inbound.transferEnded(offer(1).digest, .failed, now: now).isEmpty)
            #expect(inbound.next(now: now) { _ in .accepted }.fetches.isEmpty)
            now = now + InboundOffers.retryTime
        }
        #expect(inbound.next(now: now) { _ in .accepted }.fetches.count == 1)
        let last = inbound.transferEnded(offer(1).digest, .failed, now: now)
        #expect(last == [answer(1, false, on: left)] && !inbound.hasWaiting)
    }

    @Test("Two offers of just fetched versions are both fetched")
    func bothNew() {
        var inbound = InboundOffers()
        var new = offer(1)
        new.isJustFetched = true
        for line in [left, right] {
            _ = inbound.offersReceived([new], on: line, now: start) { _ in .accepted }
        }
        #expect(inbound.next(now: start) { _ in .accepted }.fetches.count == 1)
        #expect(
            inbound.transferEnded(new.digest, .stored, now: start) == [answer(1, true, on: left)])
        #expect(inbound.next(now: start) { _ in .accepted }.fetches.map(\.connection) == [right])
    }

    @Test("Transfers are limited in number and bytes, but one large one is always allowed")
    func bounds() {
        var inbound = InboundOffers()
        let small = (0..<20).map { offer($0) }
        _ = inbound.offersReceived(small, on: left, now: start) { _ in .accepted }
        #expect(
            inbound.next(now: start) { _ in .accepted }.fetches.count == InboundOffers.transfersMax)
        #expect(inbound.next(now: start) { _ in .accepted }.fetches.isEmpty)
        _ = inbound.transferEnded(offer(0).digest, .stored, now: start)
        #expect(inbound.next(now: start) { _ in .accepted }.fetches.count == 1)

        var large = InboundOffers()
        let bodies = (0..<3).map { offer($0, size: InboundOffers.transferBytesMax * 3) }
        _ = large.offersReceived(bodies, on: left, now: start) { _ in .accepted }
        #expect(large.next(now: start) { _ in .accepted }.fetches.count == 1)
        _ = large.transferEnded(offer(0).digest, .stored, now: start)
        #expect(large.next(now: start) { _ in .accepted }.fetches.count == 1)
    }

    @Test("Offers beyond the limit are refused at once")
    func full() {
        var inbound = InboundOffers()
        let all = (0...UInt64(InboundOffers.waitingMax)).map { offer($0) }
        let replies = inbound.offersReceived(all, on: left, now: start) { _ in .accepted }
        #expect(replies == [answer(UInt64(InboundOffers.waitingMax), false, on: left)])
        #expect(
            inbound.offersReceived([offer(5)], on: right, now: start) { _ in .accepted }.isEmpty)
    }

    @Test("Offers of a closed connection are neither fetched nor answered")
    func closed() {
        var inbound = InboundOffers()
        _ = inbound.offersReceived([offer(1), offer(2)], on: left, now: start) {
            $0 == offer(1) ? .accepted : .notOwned
        }
        _ = inbound.offersReceived([offer(3)], on: right, now: start) { _ in .accepted }
        inbound.connectionClosed(left)
        let next = inbound.next(now: start + InboundOffers.ringLagMax) { _ in .accepted }
        #expect(next.fetches.map(\.offer) == [offer(3)] && next.responses.isEmpty)
        inbound.connectionClosed(right)
        #expect(inbound.transferEnded(offer(3).digest, .stored, now: start).isEmpty)
        #expect(inbound.count == 0 && !inbound.hasWaiting)
    }
}
