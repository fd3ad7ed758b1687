import Ground
import Serving
import Store
import Synchronization

/// What is known of a fetch at this moment.
extension FillRun {
    var view: FillView { state.withLock { FillView($0, isVoid: isVoid($0)) } }

    /// What the reader does before it has the head of the answer, and what is then known.
    ///
    /// What may be given to nobody any more is given to nobody. Where it says ``ReaderStep/wait``
    /// the reader is woken through its hall.
    func look(_ reader: Fill.ReaderID, on hall: Hall) -> (ReaderStep, FillView) {
        state.withLock { state in
            let view = FillView(state, isVoid: isVoid(state))
            var step = state.lookup.fill.next(for: reader, limit: 0)
            switch (step, view.known.outcome) {
            case (.startOver, _), (.breakOff, _), (.fail, _): break
            case (_, .open):
                state.hungryLoops |= 1 << UInt64(hall.index)
                step = .wait
            default: if view.isVoid { step = .startOver(alone: false) }
            }
            return (step, view)
        }
    }

    /// The stored answer that the origin is asked about; nil if there is none.
    var stale: Resident? { state.withLock { $0.known.stale } }
    /// The origin is asked, and the answer is not whole.
    var isAskingOrigin: Bool { state.withLock { $0.lookup.isAskingOrigin } }
    /// How many have waited for it, or do.
    var readersEver: Int { state.withLock { $0.lookup.fill.readersEver } }
    var isPaused: Bool { state.withLock { $0.lookup.fill.isPaused } }
    var phase: Fill.Phase { state.withLock { $0.lookup.fill.phase } }
    /// Its body is larger than what is kept.
    var hasOutgrown: Bool {
        state.withLock { $0.lookup.fill.receivedBytes > $0.lookup.fill.keptBytesMax }
    }
    /// How far a body that is not kept may run ahead of its slowest reader.
    var windowBytes: UInt64 { state.withLock { $0.lookup.fill.windowBytes } }
    /// When ``LookupDriver/deadlineReached(_:)`` is to be told; nil if not at all.
    var deadline: Instant? { state.withLock { $0.lookup.deadline } }
    /// Others are asked who may have the answer, which this node owns.
    var isLookingBack: Bool { state.withLock { $0.lookup.isLookingBack } }
    /// There is the whole answer, or there will be none.
    var isOver: Bool { state.withLock { $0.isOver } }
}
