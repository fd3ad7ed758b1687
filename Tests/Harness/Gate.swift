/// A place in an origin's answer where the answer waits until the test lets it go on.
///
/// Once open, a gate stays open: later answers pass it without stopping.
package final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var arrivals = 0
        var waiters: [@Sendable () -> Void] = []
    }

    private let state = Monitor(State())

    /// A closed gate.
    package init() {}

    /// Lets everything that waits here go on, and all that comes later pass.
    package func open() {
        let sleepers = state.update { state in
            state.isOpen = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for wake in sleepers { wake() }
    }

    /// How many answers have come to this gate so far.
    package var arrivals: Int { state.read(\.arrivals) }

    /// Waits until at least `count` answers have come here; false if the time was up first.
    package func waitForArrivals(_ count: Int = 1, seconds: Double = 30) -> Bool {
        state.wait(until: .seconds(seconds)) { $0.arrivals >= count }
    }

    /// Registers an arrival and runs `wake` once when the gate opens; false if it is open already.
    func wait(_ wake: @escaping @Sendable () -> Void) -> Bool {
        state.update { state in
            state.arrivals += 1
            guard !state.isOpen else { return false }
            state.waiters.append(wake)
            return true
        }
    }
}
