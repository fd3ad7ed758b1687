/// What operators have said about draining the node, and what is to be done about it.
package struct DrainControl: Hashable, Sendable {
    /// What is to be done; the number says for which drain.
    package enum Step: Hashable, Sendable {
        case handOff(UInt64)
        case stop(UInt64)
    }

    private var number: UInt64 = 0
    private var isDraining = false
    private var isHandedOff = false
    private var stopsWhenDone = false
    private var isStopping = false

    package init() {}

    /// It is to hand over what it keeps, and not to own again; nil if that is so already.
    package mutating func drain(thenStop: Bool) -> Step? {
        if thenStop { stopsWhenDone = true }
        guard isDraining else {
            number += 1
            (isDraining, isHandedOff) = (true, false)
            return .handOff(number)
        }
        return next
    }

    /// What the drain that holds hands over begins only now: its number; nil if none holds.
    package mutating func restartHandoff() -> UInt64? {
        guard isDraining else { return nil }
        isHandedOff = false
        return number
    }

    /// What was begun for the drain of this number is over.
    package mutating func handoffCompleted(_ number: UInt64) -> Step? {
        guard isCurrent(number) else { return nil }
        isHandedOff = true
        return next
    }

    /// It is to own again; false if it does.
    package mutating func undrain() -> Bool {
        guard isDraining else { return false }
        (isDraining, stopsWhenDone, isStopping) = (false, false, false)
        return true
    }

    /// Nobody has said otherwise since.
    package func isCurrent(_ number: UInt64) -> Bool { isDraining && self.number == number }

    private var next: Step? {
        mutating get {
            guard stopsWhenDone, isHandedOff, !isStopping else { return nil }
            isStopping = true
            return .stop(number)
        }
    }
}
