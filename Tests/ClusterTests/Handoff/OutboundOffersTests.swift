import Cluster
import Ground
import Testing

@Suite("Offers to be sent to peers")
struct OutboundOffersTests {
    private let anna = NodeID(low: 1, high: 0)
    private let bert = NodeID(low: 2, high: 0)
    private let start = Instant(nanoseconds: 0)

    private func offer(_ number: UInt64, isNew: Bool = false) -> PeerOffer {
        PeerOffer(
            digest: EntryDigest(first: number, second: ~number), size: 100, touches: 1,
            isJustFetched: isNew)
    }

    private func outcomes(_ offers: [PeerOffer], isKept: Bool = true) -> [OfferOutcome] {
        offers.map { OfferOutcome(digest: $0.digest, isStored: isKept) }
    }

    /// Offers with two connected receivers.
    private func outbound() -> OutboundOffers {
        var outbound = OutboundOffers()
        outbound.updateReceivers([anna, bert], connected: [anna, bert], now: start)
        return outbound
    }

    @Test("Just fetched entries are offered first, then moved ones in order")
    func order() {
        var outbound = outbound()
        for number in 1...3 as ClosedRange<UInt64> { outbound.add(offer(number), to: anna) }
        outbound.add(offer(9, isNew: true), to: anna)
        let offers = outbound.next(for: anna, now: start)
        #expect(offers == [offer(9, isNew: true), offer(1), offer(2), offer(3)])
        #expect(outbound.next(for: bert, now: start).isEmpty)
        #expect(outbound.openCount == 4 && outbound.waitingCount == 0 && !outbound.isEmpty)
        #expect(
            outbound.outcomesReceived(outcomes(Array(offers.prefix(3))), by: anna, now: start) == (
                3, 3
            )
        )
        #expect(
            outbound.outcomesReceived(outcomes([offers[3]], isKept: false), by: anna, now: start)
                == (
                    1, 0
                ))
        #expect(outbound.isEmpty)
    }

    @Test("Open offers are limited for each receiver; outcomes free them")
    func window() {
        var outbound = outbound()
        for number in 0..<UInt64(OutboundOffers.openMax + 5) {
            outbound.add(offer(number), to: anna)
        }
        let first = outbound.next(for: anna, now: start)
        #expect(first.count == OutboundOffers.openMax)
        #expect(outbound.next(for: anna, now: start).isEmpty)
        _ = outbound.outcomesReceived(outcomes(Array(first.prefix(3))), by: anna, now: start)
        #expect(outbound.next(for: anna, now: start).count == 3)
        // An outcome for an unknown offer, or from another receiver, is ignored.
        #expect(outbound.outcomesReceived(outcomes([offer(999)]), by: anna, now: start).count == 0)
        #expect(outbound.outcomesReceived(outcomes(first), by: bert, now: start).count == 0)
    }

    @Test("An entry is offered once, however often it is added")
    func once() {
        var outbound = outbound()
        for _ in 0..<3 { outbound.add(offer(1), to: anna) }
        #expect(outbound.next(for: anna, now: start).count == 1)
        outbound.add(offer(1), to: anna)
        #expect(outbound.next(for: anna, now: start).isEmpty)
        _ = outbound.outcomesReceived(outcomes([offer(1)]), by: anna, now: start)
        outbound.add(offer(1), to: anna)
        #expect(outbound.next(for: anna, now: start).count == 1)
    }

    @Test("Offers open on a closed connection are sent again on the next")
    func reconnected() {
        var outbound = outbound()
        outbound.add(offer(1), to: anna)
        #expect(outbound.next(for: anna, now: start).count == 1)
        outbound.updateReceivers([anna, bert], connected: [bert], now: start)
        #expect(outbound.next(for: anna, now: start).isEmpty && outbound.waitingCount == 1)
        outbound.updateReceivers([anna, bert], connected: [anna, bert], now: start)
        #expect(outbound.next(for: anna, now: start) == [offer(1)])
        // The same if another connection has replaced the first immediately.
        outbound.updateReceivers(
            [anna, bert], connected: [anna, bert], reconnected: [anna], now: start)
        #expect(outbound.next(for: anna, now: start) == [offer(1)])
        #expect(outbound.next(for: anna, now: start).isEmpty)
    }

    @Test("An entry fetched again during an open offer is offered once more")
    func renewed() {
        var outbound = outbound()
        outbound.add(offer(1), to: anna)
        #expect(outbound.next(for: anna, now: start) == [offer(1)])
        outbound.add(offer(1, isNew: true), to: anna)
        #expect(outbound.next(for: anna, now: start).isEmpty)
        _ = outbound.outcomesReceived(outcomes([offer(1)]), by: anna, now: start)
        #expect(outbound.next(for: anna, now: start) == [offer(1, isNew: true)])
        _ = outbound.outcomesReceived(outcomes([offer(1)]), by: anna, now: start)
        #expect(outbound.isEmpty)
    }

    @Test("A silent receiver is given up after a timeout")
    func silent() {
        var outbound = outbound()
        for number in 0..<UInt64(OutboundOffers.openMax + 5) {
            outbound.add(offer(number), to: anna)
        }
        var now = start
        while now < start + OutboundOffers.silenceTimeout {
            #expect(outbound.missedReceivers.isEmpty)
            _ = outbound.next(for: anna, now: now)
            now = now + .seconds(5)
            outbound.ticked(now)
        }
        #expect(outbound.missedReceivers == [anna] && outbound.isEmpty)
        #expect(outbound.droppedCount == UInt64(OutboundOffers.openMax + 5))
    }

    @Test("An offer without an outcome is sent again after a timeout")
    func lost() {
        var outbound = outbound()
        outbound.add(offer(1), to: anna)
        #expect(outbound.next(for: anna, now: start).count == 1)
        outbound.ticked(start + OutboundOffers.outcomeTimeout - .milliseconds(1))
        #expect(outbound.next(for: anna, now: start).isEmpty)
        let later = start + OutboundOffers.outcomeTimeout
        outbound.ticked(later)
        #expect(outbound.next(for: anna, now: later) == [offer(1)])
    }

    @Test("Offers that could not be sent are queued again")
    func putBack() {
        var outbound = outbound()
        for number in 1...3 as ClosedRange<UInt64> { outbound.add(offer(number), to: anna) }
        let offers = outbound.next(for: anna, now: start)
        outbound.requeue(offers, for: anna)
        #expect(outbound.openCount == 0 && outbound.waitingCount == 3)
        #expect(outbound.next(for: anna, now: start).count == 3)
    }

    @Test("An unreachable receiver is given up after a timeout and misses its offers")
    func unreachable() {
        var outbound = outbound()
        outbound.add(offer(1), to: anna)
        outbound.updateReceivers([anna, bert], connected: [bert], now: start)
        let justBefore = start + OutboundOffers.unreachableTimeout - .milliseconds(1)
        outbound.ticked(justBefore)
        #expect(!outbound.isEmpty && outbound.missedReceivers.isEmpty)
        outbound.ticked(start + OutboundOffers.unreachableTimeout)
        #expect(
            outbound.isEmpty && outbound.missedReceivers == [anna] && outbound.droppedCount == 1)
        #expect(outbound.add(offer(2), to: anna) == false && outbound.droppedCount == 2)
        // When it returns, everything is added again.
        outbound.updateReceivers([anna, bert], connected: [anna, bert], now: start)
        #expect(outbound.missedReceivers == [anna])
        outbound.restart(for: anna)
        #expect(outbound.add(offer(1), to: anna) == true && outbound.missedReceivers.isEmpty)
    }

    @Test("A node that owns nothing any more is offered nothing")
    func gone() {
        var outbound = outbound()
        outbound.add(offer(1), to: anna)
        outbound.updateReceivers([bert], connected: [anna, bert], now: start)
        #expect(outbound.isEmpty && outbound.receiverIDs == [bert])
        #expect(outbound.add(offer(2), to: anna) == false)
    }

    @Test("The queue is bounded: the oldest fetched entries are dropped, moved ones held back")
    func bounds() {
        var outbound = outbound()
        for number in 0...UInt64(OutboundOffers.newMax) {
            outbound.add(offer(number, isNew: true), to: anna)
        }
        #expect(outbound.waitingCount == OutboundOffers.newMax && outbound.droppedCount == 1)
        #expect(outbound.next(for: anna, now: start).first == offer(1, isNew: true))
        #expect(outbound.hasRoom)
        for number in 0..<UInt64(OutboundOffers.movedMax) { outbound.add(offer(number), to: bert) }
        #expect(!outbound.hasRoom)
        _ = outbound.next(for: bert, now: start)
        #expect(outbound.hasRoom)
    }

    @Test("After any sequence of events each offer is answered, waiting or dropped")
    func law() {
        for seed in 1...200 as ClosedRange<UInt64> {
            var dice = SplitMix64(seed: seed)
            var outbound = outbound()
            var now = start
            var (added, answered) = (0, 0)
            for number in 0..<UInt64(300) {
                let node = Bool.random(using: &dice) ? anna : bert
                switch Int.random(in: 0..<8, using: &dice) {
                case 0...3:
                    let isNew = Bool.random(using: &dice)
                    outbound.add(offer(number, isNew: isNew), to: node)
                    added += 1
                case 4:
                    let offers = outbound.next(for: node, now: now)
                    if Bool.random(using: &dice) { outbound.requeue(offers, for: node) }
                case 5:
                    let all = outcomes((0..<number).map { offer($0) })
                    answered += outbound.outcomesReceived(all, by: node, now: now).count
                case 6:
                    let connected = [[], [anna], [bert], [anna, bert]].randomElement(using: &dice)
                    outbound.updateReceivers(
                        [anna, bert], connected: Set(connected ?? []), now: now)
                default:
                    now = now + .seconds(.random(in: 0...60, using: &dice))
                    outbound.ticked(now)
                }
                let known =
                    answered + outbound.waitingCount + outbound.openCount
                    + Int(outbound.droppedCount)
                // A renewed offer is answered twice.
                #expect(known >= added, "seed \(seed)")
            }
            // With stable connections and outcomes nothing is left.
            outbound.updateReceivers([anna, bert], connected: [anna, bert], now: now)
            for node in [anna, bert] {
                while true {
                    now = now + OutboundOffers.outcomeTimeout
                    outbound.ticked(now)
                    let offers = outbound.next(for: node, now: now)
                    guard !offers.isEmpty else { break }
                    _ = outbound.outcomesReceived(outcomes(offers), by: node, now: now)
                }
            }
            #expect(outbound.isEmpty, "seed \(seed)")
        }
    }
}
