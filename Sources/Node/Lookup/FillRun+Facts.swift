import Ground
import Serving
import Store
import Synchronization

/// What is known of a fetch at this moment.
extension ActiveFetch {
    var snapshot: FetchSnapshot { state.withLock { FetchSnapshot($0, isVoid: isUnusable($0)) } }

    /// What the reader does before it has the head of the answer, and what is then known.
    ///
    /// What may be given to nobody any more is given to nobody. Where it says ``ReaderStep/wait``
    /// the reader is woken through its hall.
    func nextHeadStep(_ reader: Fetch.ReaderID, on context: EventLoopContext) -> (
        ReaderStep, FetchSnapshot
    ) {
        state.withLock { state in
            let view = FetchSnapshot(state, isVoid: isUnusable(state))
            var step = state.lookup.fetch.nextStep(for: reader, limit: 0)
            switch (step, view.progress.outcome) {
            case (.restart, _), (.abort, _), (.fail, _): break
            case (_, .pending):
                state.waitingLoops |= 1 << UInt64(context.index)
                step = .wait
            default: if view.isUnusable { step = .restart(isExclusive: false) }
            }
            return (step, view)
        }
    }

    /// The stored answer that the origin is asked about; nil if there is none.
    var staleEntry: MemoryEntry? { state.withLock { $0.progress.staleEntry } }
    /// The origin is asked, and the answer is not whole.
    var isFetchingFromOrigin: Bool { state.withLock { $0.lookup.isFetchingFromOrigin } }
    /// How many have waited for it, or do.
    var totalReaderCount: Int { state.withLock { $0.lookup.fetch.totalReaderCount } }
    var isPaused: Bool { state.withLock { $0.lookup.fetch.isPaused } }
    var phase: Fetch.Phase { state.withLock { $0.lookup.fetch.phase } }
    /// Its body is larger than what is kept.
    var exceedsStorageLimit: Bool {
        state.withLock { $0.lookup.fetch.receivedBytes > $0.lookup.fetch.keptBytesMax }
    }
    /// How far a body that is not kept may run ahead of its slowest reader.
    var windowBytes: UInt64 { state.withLock { $0.lookup.fetch.windowBytes } }
    /// When ``LookupDriver/deadlineReached(_:)`` is to be told; nil if not at all.
    var deadline: Instant? { state.withLock { $0.lookup.deadline } }
    /// Others are asked who may have the answer, which this node owns.
    var isProbingOwners: Bool { state.withLock { $0.lookup.isProbingOwners } }
    /// There is the whole answer, or there will be none.
    var isFinished: Bool { state.withLock { $0.isFinished } }
}
