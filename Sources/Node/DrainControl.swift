/// The state of an operator's orders to drain and undrain the node, and the steps that follow from
/// them.
///
/// Each drain has a number, so that the end of an earlier handoff is not taken for that of a later
/// one.
package struct DrainControl: Hashable, Sendable {
    /// The next step of a drain; the associated value is the number of the drain.
    package enum Step: Hashable, Sendable {
        /// Drop ownership and hand off all entries to the other owners.
        case handOff(UInt64)
        /// Stop the node, as everything is handed off.
        case stop(UInt64)
    }

    /// The number of the latest drain; 0 before the first.
    private var number: UInt64 = 0
    private var isDraining = false
    private var isHandedOff = false
    /// True if the node is to stop once the handoff is complete.
    private var stopsWhenDone = false
    /// True once ``Step/stop(_:)`` has been returned for the current drain.
    private var isStopping = false

    /// Creates a state without a drain.
    package init() {}

    /// Starts a drain, or adds to the current one that the node stops when it is done.
    ///
    /// - Returns: the step to perform; `nil` if there is nothing new to do.
    package mutating func drain(thenStop: Bool) -> Step? {
        if thenStop { stopsWhenDone = true }
        guard isDraining else {
            number += 1
            (isDraining, isHandedOff) = (true, false)
            return .handOff(number)
        }
        return next
    }

    /// Marks the handoff of the current drain as not complete, for the case that it starts only
    /// now.
    ///
    /// - Returns: the number of the current drain; `nil` if the node is not draining.
    package mutating func restartHandoff() -> UInt64? {
        guard isDraining else { return nil }
        isHandedOff = false
        return number
    }

    /// Records the end of the handoff of drain `number`.
    ///
    /// - Returns: the step to perform; `nil` if there is none or another order has come since.
    package mutating func handoffCompleted(_ number: UInt64) -> Step? {
        guard isCurrent(number) else { return nil }
        isHandedOff = true
        return next
    }

    /// Cancels the drain, and with it an order to stop afterwards; returns false if the node is not
    /// draining.
    package mutating func undrain() -> Bool {
        guard isDraining else { return false }
        (isDraining, stopsWhenDone, isStopping) = (false, false, false)
        return true
    }

    /// Returns true if drain `number` is in effect: it was neither cancelled nor superseded.
    package func isCurrent(_ number: UInt64) -> Bool { isDraining && self.number == number }

    /// The stop step, returned once per drain when the handoff is complete and a stop was ordered.
    private var next: Step? {
        mutating get {
            guard stopsWhenDone, isHandedOff, !isStopping else { return nil }
            isStopping = true
            return .stop(number)
        }
    }
}
