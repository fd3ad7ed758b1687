import Node
import Testing

@Suite("Commands to drain")
struct DrainControlTests {
    @Test("A node hands off once, however often it is commanded, and stays")
    func stays() {
        var orders = DrainControl()
        #expect(orders.drain(thenStop: false) == .handOff(1))
        #expect(orders.drain(thenStop: false) == nil && orders.isCurrent(1))
        #expect(orders.handoffCompleted(1) == nil)
        #expect(orders.drain(thenStop: false) == nil)
    }

    @Test("A node stops once, after its handoff, in any order of the commands", arguments: 0..<3)
    func stops(moment: Int) {
        var orders = DrainControl()
        #expect(orders.drain(thenStop: moment == 0) == .handOff(1))
        if moment == 1 { #expect(orders.drain(thenStop: true) == nil) }
        #expect(orders.handoffCompleted(1) == (moment < 2 ? .stop(1) : nil))
        #expect(orders.drain(thenStop: true) == (moment < 2 ? nil : .stop(1)))
        #expect(orders.drain(thenStop: true) == nil && orders.isCurrent(1))
    }

    @Test("A handoff that is possible only later happens then, before the node stops")
    func later() {
        var orders = DrainControl()
        #expect(orders.restartHandoff() == nil)
        #expect(orders.drain(thenStop: false) == .handOff(1))
        #expect(orders.handoffCompleted(1) == nil)
        #expect(orders.restartHandoff() == 1)
        #expect(orders.drain(thenStop: true) == nil)
        #expect(orders.handoffCompleted(1) == .stop(1))
    }

    @Test("After an undo a node does not stop, and the handoff in progress no longer counts")
    func undone() {
        var orders = DrainControl()
        #expect(orders.undrain() == false)
        _ = orders.drain(thenStop: true)
        #expect(orders.undrain() && !orders.isCurrent(1))
        #expect(orders.handoffCompleted(1) == nil)
        #expect(orders.drain(thenStop: false) == .handOff(2))
        #expect(orders.handoffCompleted(1) == nil && orders.handoffCompleted(2) == nil)
        #expect(orders.undrain() && orders.drain(thenStop: true) == .handOff(3))
        #expect(orders.handoffCompleted(3) == .stop(3) && orders.isCurrent(3))
        #expect(orders.undrain() && !orders.isCurrent(3))
    }
}
