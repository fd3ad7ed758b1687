/// What the shell is to do after an event, in the order given.
package enum FillEffect: Hashable, Sendable {
    /// Readers that were told to wait are to ask again.
    case wakeReaders
    /// The origin is to be read from or not, as ``Fill/isPaused`` says by the time this is done:
    /// two of them may be done in either order.
    case paceOrigin
    /// Break the fetch off: nobody wants what it brings.
    case cancelOrigin
    /// The bytes below ``Fill/heldFrom`` are needed no more.
    case dropHead
    /// The body is not kept after all; give back what was reserved for it.
    case stopKeeping
}

/// What a reader does next.
package enum ReaderStep: Hashable, Sendable {
    /// Nothing now; asks again when woken.
    case wait
    /// Takes these bytes of the body, then says ``Fill/advanced(_:by:effects:)``.
    case take(from: UInt64, bytes: Int)
    /// The body is whole and taken.
    case finish
    /// Begins anew as if it had just arrived. `alone`: the answer may not be shared, so the next
    /// one hardly will be either, and waiting for it would serve the waiters one after the other.
    case startOver(alone: Bool)
    /// Its answer cannot be completed; the fetch itself may go on.
    case breakOff
    /// The fetch failed.
    case fail
}
