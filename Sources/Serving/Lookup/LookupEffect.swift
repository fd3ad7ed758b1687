package import Ground

/// What the shell is to do after an event, in the order given.
package enum LookupEffect: Hashable, Sendable {
    // Where the answer is looked for, on the loop of the fetch.

    /// The disk is to be read; it says ``Lookup/absent(_:effects:)`` or brings the answer.
    case readDisk
    /// ``Lookup/wentBeyond(_:startsNothing:_:effects:)`` is to be told which peers there are.
    case resolvePeers
    case sendPeerQuery(NodeID, OwnerSearch.QueryKind)
    /// What the peer still says is not wanted.
    case cancelPeerQuery(NodeID)
    /// What the peer has answered is the answer.
    case acceptPeerResponse(NodeID)
    case fetchFromOrigin
    /// The rest of the body is to be brought by a fetch of its own, which asks peers or not.
    case resume(skipsPeers: Bool)
    /// The answer is not here, and nobody else is asked.
    case reportMiss

    // What comes of it.

    /// Readers that were told to wait are to ask again.
    case wakeReaders
    /// What brings the body goes on or not, as ``Fetch/isPaused`` says by the time this is done:
    /// two of them may be done in either order.
    case updateFlow
    /// Break the fetch off: nobody wants what it brings.
    case abort
    /// The bytes below ``Fetch/heldFrom`` are needed no more.
    case releasePrefix
    /// The body is not kept after all; give back what was reserved for it.
    case stopStoring
}

/// What a reader does next.
package enum ReaderStep: Hashable, Sendable {
    /// Nothing now; asks again when woken.
    case wait
    /// Takes these bytes of the body, then says ``Fetch/advanced(_:by:effects:)``.
    case read(from: UInt64, bytes: Int)
    /// The body is whole and taken.
    case finish
    /// Begins anew as if it had just arrived. `alone`: the answer may not be shared, so the next
    /// one hardly will be either, and waiting for it would serve the waiters one after the other.
    case restart(isExclusive: Bool)
    /// Its answer cannot be completed; the fetch itself may go on.
    case abort
    /// The fetch failed.
    case fail
}
