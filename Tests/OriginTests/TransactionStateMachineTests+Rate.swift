import Ground
import Origin
import Testing
import Wire

extension TransactionStateMachineTests {
    @Test("A body below the minimum rate is given up, a faster one is not")
    func bodyTrickles() {
        var machine = readingBody(.chunked, rateMin: 10)
        for second in 1...5 { machine.bytesReceived(10, now: at(Int64(second))) }
        #expect(machine.ticked(now: at(6)) == .wait)
        for second in 6...10 { machine.bytesReceived(9, now: at(Int64(second))) }
        #expect(machine.deadline == at(11))
        #expect(
            machine.ticked(now: at(11))
                == .fail(.timedOut(.readingSlowly, limit: .seconds(5))))
    }

    @Test("Paused time does not count, and event streams have no minimum rate")
    func trickleAllowed() {
        var machine = readingBody(.chunked, rateMin: 10)
        var events = machine
        machine.paused()
        #expect(machine.ticked(now: at(50)) == .wait)
        machine.resumed(now: at(50))
        machine.bytesReceived(50, now: at(54))
        #expect(machine.ticked(now: at(55)) == .wait)
        events.minimumRateWaived()
        for second in 2...20 {
            events.bytesReceived(1, now: at(Int64(second)))
            #expect(events.ticked(now: at(Int64(second))) == .wait)
        }
    }
}
