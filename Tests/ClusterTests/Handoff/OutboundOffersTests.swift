import Cluster
import Ground
import Testing

@Suite("What is to be handed over")
struct OutboundOffersTests {
    private let anna = NodeID(low: 1, high: 0)
    private let bert = NodeID(low: 2, high: 0)
    private let start = Instant(nanoseconds: 0)

    private func offer(_ number: UInt64, isNew: Bool = false) -> PeerOffer {
        PeerOffer(
            digest: EntryDigest(first: number, second: ~number), size: 100, touches: 1,
            isJustFetched: isNew)
    }

    private func verdicts(_ offers: [PeerOffer], isKept: Bool = true) -> [OfferOutcome] {
        offers.map { OfferOutcome(digest: $0.digest, isStored: isKept) }
    }

    /// A book for both, with whom there is a connection.
    private func book() -> OutboundOffers {
        var book = OutboundOffers()
        book.updateReceivers([anna, bert], connected: [anna, bert], now: start)
        return book
    }

    @Test("what was just fetched goes first, then what moved, in the order given")
    func order() {
        var book = book()
        for number in 1...3 as ClosedRange<UInt64> { book.add(offer(number), to: anna) }
        book.add(offer(9, isNew: true), to: anna)
        let offers = book.next(for: anna, now: start)
        #expect(offers == [offer(9, isNew: true), offer(1), offer(2), offer(3)])
        #expect(book.next(for: bert, now: start).isEmpty)
        #expect(book.openCount == 4 && book.waitingCount == 0 && !book.isEmpty)
        #expect(
            book.outcomesReceived(verdicts(Array(offers.prefix(3))), by: anna, now: start) == (3, 3)
        )
        #expect(
            book.outcomesReceived(verdicts([offers[3]], isKept: false), by: anna, now: start) == (
                1, 0
            ))
        #expect(book.isEmpty)
    }

    @Test("no more is open than the receiver can be asked to bear; answers make room")
    func window() {
        var book = book()
        for number in 0..<UInt64(OutboundOffers.openMax + 5) { book.add(offer(number), to: anna) }
        let first = book.next(for: anna, now: start)
        #expect(first.count == OutboundOffers.openMax)
        #expect(book.next(for: anna, now: start).isEmpty)
        _ = book.outcomesReceived(verdicts(Array(first.prefix(3))), by: anna, now: start)
        #expect(book.next(for: anna, now: start).count == 3)
        // An answer to what was not offered, or by another, is none.
        #expect(book.outcomesReceived(verdicts([offer(999)]), by: anna, now: start).count == 0)
        #expect(book.outcomesReceived(verdicts(first), by: bert, now: start).count == 0)
    }

    @Test("an entry is in a line once, however often it is added")
    func once() {
        var book = book()
        for _ in 0..<3 { book.add(offer(1), to: anna) }
        #expect(book.next(for: anna, now: start).count == 1)
        book.add(offer(1), to: anna)
        #expect(book.next(for: anna, now: start).isEmpty)
        _ = book.outcomesReceived(verdicts([offer(1)]), by: anna, now: start)
        book.add(offer(1), to: anna)
        #expect(book.next(for: anna, now: start).count == 1)
    }

    @Test("what was open when the connection went is offered again on the next one")
    func reconnected() {
        var book = book()
        book.add(offer(1), to: anna)
        #expect(book.next(for: anna, now: start).count == 1)
        book.updateReceivers([anna, bert], connected: [bert], now: start)
        #expect(book.next(for: anna, now: start).isEmpty && book.waitingCount == 1)
        book.updateReceivers([anna, bert], connected: [anna, bert], now: start)
        #expect(book.next(for: anna, now: start) == [offer(1)])
        // The same if another connection has taken the place of the first at once.
        book.updateReceivers(
            [anna, bert], connected: [anna, bert], reconnected: [anna], now: start)
        #expect(book.next(for: anna, now: start) == [offer(1)])
        #expect(book.next(for: anna, now: start).isEmpty)
    }

    @Test("what is fetched anew while an older offer of it is open is offered once more")
    func renewed() {
        var book = book()
        book.add(offer(1), to: anna)
        #expect(book.next(for: anna, now: start) == [offer(1)])
        book.add(offer(1, isNew: true), to: anna)
        #expect(book.next(for: anna, now: start).isEmpty)
        _ = book.outcomesReceived(verdicts([offer(1)]), by: anna, now: start)
        #expect(book.next(for: anna, now: start) == [offer(1, isNew: true)])
        _ = book.outcomesReceived(verdicts([offer(1)]), by: anna, now: start)
        #expect(book.isEmpty)
    }

    @Test("who answers nothing holds up nobody for long")
    func silent() {
        var book = book()
        for number in 0..<UInt64(OutboundOffers.openMax + 5) { book.add(offer(number), to: anna) }
        var now = start
        while now < start + OutboundOffers.silenceTimeout {
            #expect(book.missedReceivers.isEmpty)
            _ = book.next(for: anna, now: now)
            now = now + .seconds(5)
            book.ticked(now)
        }
        #expect(book.missedReceivers == [anna] && book.isEmpty)
        #expect(book.droppedCount == UInt64(OutboundOffers.openMax + 5))
    }

    @Test("an answer that does not come is not waited for for ever")
    func lost() {
        var book = book()
        book.add(offer(1), to: anna)
        #expect(book.next(for: anna, now: start).count == 1)
        book.ticked(start + OutboundOffers.outcomeTimeout - .milliseconds(1))
        #expect(book.next(for: anna, now: start).isEmpty)
        let later = start + OutboundOffers.outcomeTimeout
        book.ticked(later)
        #expect(book.next(for: anna, now: later) == [offer(1)])
    }

    @Test("what could not be said waits again")
    func putBack() {
        var book = book()
        for number in 1...3 as ClosedRange<UInt64> { book.add(offer(number), to: anna) }
        let offers = book.next(for: anna, now: start)
        book.requeue(offers, for: anna)
        #expect(book.openCount == 0 && book.waitingCount == 3)
        #expect(book.next(for: anna, now: start).count == 3)
    }

    @Test("who is out of reach holds up nobody for long, and misses what it was to be offered")
    func unreachable() {
        var book = book()
        book.add(offer(1), to: anna)
        book.updateReceivers([anna, bert], connected: [bert], now: start)
        let justBefore = start + OutboundOffers.unreachableTimeout - .milliseconds(1)
        book.ticked(justBefore)
        #expect(!book.isEmpty && book.missedReceivers.isEmpty)
        book.ticked(start + OutboundOffers.unreachableTimeout)
        #expect(book.isEmpty && book.missedReceivers == [anna] && book.droppedCount == 1)
        #expect(book.add(offer(2), to: anna) == false && book.droppedCount == 2)
        // Once it is back, everything is added anew.
        book.updateReceivers([anna, bert], connected: [anna, bert], now: start)
        #expect(book.missedReceivers == [anna])
        book.restart(for: anna)
        #expect(book.add(offer(1), to: anna) == true && book.missedReceivers.isEmpty)
    }

    @Test("who owns nothing any more is offered nothing more")
    func gone() {
        var book = book()
        book.add(offer(1), to: anna)
        book.updateReceivers([bert], connected: [anna, bert], now: start)
        #expect(book.isEmpty && book.receiverIDs == [bert])
        #expect(book.add(offer(2), to: anna) == false)
    }

    @Test("what waits is bounded: the oldest of what was fetched go, and what moves is held back")
    func bounds() {
        var book = book()
        for number in 0...UInt64(OutboundOffers.newMax) {
            book.add(offer(number, isNew: true), to: anna)
        }
        #expect(book.waitingCount == OutboundOffers.newMax && book.droppedCount == 1)
        #expect(book.next(for: anna, now: start).first == offer(1, isNew: true))
        #expect(book.hasRoom)
        for number in 0..<UInt64(OutboundOffers.movedMax) { book.add(offer(number), to: bert) }
        #expect(!book.hasRoom)
        _ = book.next(for: bert, now: start)
        #expect(book.hasRoom)
    }

    @Test("in whatever order things happen, each offer is answered, waiting, or dropped")
    func law() {
        for seed in 1...200 as ClosedRange<UInt64> {
            var dice = SplitMix64(seed: seed)
            var book = book()
            var now = start
            var (added, answered) = (0, 0)
            for number in 0..<UInt64(300) {
                let node = Bool.random(using: &dice) ? anna : bert
                switch Int.random(in: 0..<8, using: &dice) {
                case 0...3:
                    let isNew = Bool.random(using: &dice)
                    book.add(offer(number, isNew: isNew), to: node)
                    added += 1
                case 4:
                    let offers = book.next(for: node, now: now)
                    if Bool.random(using: &dice) { book.requeue(offers, for: node) }
                case 5:
                    let all = verdicts((0..<number).map { offer($0) })
                    answered += book.outcomesReceived(all, by: node, now: now).count
                case 6:
                    let connected = [[], [anna], [bert], [anna, bert]].randomElement(using: &dice)
                    book.updateReceivers([anna, bert], connected: Set(connected ?? []), now: now)
                default:
                    now = now + .seconds(.random(in: 0...60, using: &dice))
                    book.ticked(now)
                }
                let known = answered + book.waitingCount + book.openCount + Int(book.droppedCount)
                // What was renewed is answered once more.
                #expect(known >= added, "seed \(seed)")
            }
            // With connections that hold and answers that come nothing is left.
            book.updateReceivers([anna, bert], connected: [anna, bert], now: now)
            for node in [anna, bert] {
                while true {
                    now = now + OutboundOffers.outcomeTimeout
                    book.ticked(now)
                    let offers = book.next(for: node, now: now)
                    guard !offers.isEmpty else { break }
                    _ = book.outcomesReceived(verdicts(offers), by: node, now: now)
                }
            }
            #expect(book.isEmpty, "seed \(seed)")
        }
    }
}
