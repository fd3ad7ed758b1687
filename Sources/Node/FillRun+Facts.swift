import HTTPRules
import Serving
import Store
import Synchronization

/// What is known of a fetch at this moment.
extension FillRun {
    /// What is known of the answer, and whether the body is held whole.
    var outcome: Outcome { state.withLock { $0.outcome } }
    /// The stored answer that the origin is asked about; nil if there is none.
    var stale: Resident? { state.withLock { $0.stale } }
    /// Whether an answer that is whole is kept for others.
    var isStored: Bool { state.withLock { $0.isStored } }
    /// Not nil if the stale answer was given because the origin failed.
    var stoodIn: StoodIn? { state.withLock { $0.stoodIn } }
    /// What the one who caused the fetch is given, if that is not what is stored.
    var own: FillAnswer? { state.withLock { $0.own } }
    /// The origin has confirmed what is stored.
    var isValidated: Bool { state.withLock { $0.isValidated } }
    /// What it brings may be given to a peer, which keeps it for others.
    ///
    /// What a peer gives may be in any case: that one keeps it.
    var mayBePassedOn: Bool {
        state.withLock { ($0.machine.mayBePassedOn || $0.isFromPeer) && $0.isStored }
    }
    /// A peer did not give it to its end.
    var isLostByPeer: Bool { state.withLock { $0.isFromPeer && $0.machine.phase == .failed } }
    /// What it brings comes from a peer.
    var isFromPeer: Bool { state.withLock { $0.isFromPeer } }
    /// The origin is asked for no more than the one who caused it wants.
    var isPart: Bool { state.withLock { $0.machine.isPart } }
    /// Its body is larger than what is kept.
    var hasOutgrown: Bool {
        state.withLock { $0.machine.receivedBytes > $0.machine.keptBytesMax }
    }
    /// A peer waits for it.
    var isOwners: Bool { state.withLock { $0.isOwners } }
    /// The origin was asked.
    var wasAsked: Bool { state.withLock { $0.askedAt != nil } }
    /// The origin was asked, and the answer is not whole.
    var isAskingOrigin: Bool { state.withLock { $0.askedAt != nil && !$0.isOver } }
    var examination: Examination? { state.withLock { $0.examination } }
    var trailers: [UInt8] { state.withLock { $0.trailers } }
    var isPaused: Bool { state.withLock { $0.machine.isPaused } }
    /// How far a body that is not kept may run ahead of its slowest reader.
    var windowBytes: UInt64 { state.withLock { $0.machine.windowBytes } }
    /// How many have waited for it, or do.
    var readersEver: Int { state.withLock { $0.machine.readersEver } }
    var phase: Fill.Phase { state.withLock { $0.machine.phase } }
}
