import Node
import Testing

@Suite("What operators say about draining")
struct DrainOrdersTests {
    @Test("a node hands over once, however often it is told to, and stays")
    func stays() {
        var orders = DrainOrders()
        #expect(orders.drain(thenStop: false) == .handOver(1))
        #expect(orders.drain(thenStop: false) == nil && orders.holds(1))
        #expect(orders.handedOver(1) == nil)
        #expect(orders.drain(thenStop: false) == nil)
    }

    @Test("it stops once, when all is handed over, whenever it was told to", arguments: 0..<3)
    func stops(moment: Int) {
        var orders = DrainOrders()
        #expect(orders.drain(thenStop: moment == 0) == .handOver(1))
        if moment == 1 { #expect(orders.drain(thenStop: true) == nil) }
        #expect(orders.handedOver(1) == (moment < 2 ? .stop(1) : nil))
        #expect(orders.drain(thenStop: true) == (moment < 2 ? nil : .stop(1)))
        #expect(orders.drain(thenStop: true) == nil && orders.holds(1))
    }

    @Test("what it can hand over only later is handed over then, before it stops")
    func later() {
        var orders = DrainOrders()
        #expect(orders.beginAnew() == nil)
        #expect(orders.drain(thenStop: false) == .handOver(1))
        #expect(orders.handedOver(1) == nil)
        #expect(orders.beginAnew() == 1)
        #expect(orders.drain(thenStop: true) == nil)
        #expect(orders.handedOver(1) == .stop(1))
    }

    @Test("put back on the ring it does not stop, and what was begun for it counts no more")
    func undone() {
        var orders = DrainOrders()
        #expect(orders.undrain() == false)
        _ = orders.drain(thenStop: true)
        #expect(orders.undrain() && !orders.holds(1))
        #expect(orders.handedOver(1) == nil)
        #expect(orders.drain(thenStop: false) == .handOver(2))
        #expect(orders.handedOver(1) == nil && orders.handedOver(2) == nil)
        #expect(orders.undrain() && orders.drain(thenStop: true) == .handOver(3))
        #expect(orders.handedOver(3) == .stop(3) && orders.holds(3))
        #expect(orders.undrain() && !orders.holds(3))
    }
}
