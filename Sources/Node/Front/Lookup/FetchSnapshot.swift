import HTTPRules
import Serving
import Store

/// What is known of a fetch at one instant, as one of its readers or what brings the answer sees
/// it.
struct FetchSnapshot: Sendable {
    /// What is known of the answer.
    enum Outcome: Sendable {
        case pending
        /// The body is on its way.
        case receiving(FetchedResponse)
        /// The whole of it is an entry, new or freshened.
        case stored(MemoryEntry)
        /// The whole of it came from the disk, and is an entry in memory now.
        case loadedFromDisk(MemoryEntry)
        /// There is nothing to serve.
        case failed(Problem)
    }

    /// Why what is stored was given in the stead of an answer of the origin's.
    struct StaleFallback: Sendable {
        /// That of the answer; nil if there was none.
        let status: UInt16?
    }

    /// What has come of it so far.
    struct Progress: Sendable {
        var outcome = Outcome.pending
        /// The stored answer that the origin is asked about; nil if there is none.
        var staleEntry: MemoryEntry?
        /// What is whole may be kept for others.
        var isStored = true
        /// What it brings comes from a peer.
        var isFromPeer = false
        /// A client answers for what nobody reads of it.
        var isChargedToClient = false
        /// The origin has said that what is stored still holds.
        var isValidated = false
        /// The origin failed, and the stale answer is given in its stead.
        var staleFallback: StaleFallback?
        /// The answer as the one who caused the fetch gets it, if that is not as it is stored.
        var requesterResponse: FetchedResponse?
        /// What the rules say of an answer of a site's.
        var cacheability: Cacheability?
        /// The next request for it will hardly be answered otherwise.
        var isHitForMiss = false
        /// A peer has given it with fields for the one who caused the fetch, and has it for others
        /// without them.
        var isRequesterSpecific = false
        /// What follows the body (RFC 9110 §6.5), as lines with their ends.
        var trailers: [UInt8] = []
    }

    let progress: Progress
    let phase: Fetch.Phase
    /// The origin is asked for no more than the one who caused it wants.
    let isPart: Bool
    /// The origin was asked.
    let hasContactedOrigin: Bool
    /// A peer waits for it.
    let isOwner: Bool
    /// How many have waited for it, or do.
    let totalReaderCount: Int
    /// It may go to whoever asks, as far as is known.
    let isShared: Bool
    /// What it brings may be given to nobody any more, be it that it was good when it came.
    let isUnusable: Bool

    init(_ state: borrowing ActiveFetch.State, isVoid: Bool) {
        let fetch = state.lookup.fetch
        progress = state.progress
        phase = fetch.phase
        isPart = fetch.isPart
        hasContactedOrigin = state.originFetchStartedAt != nil
        isOwner = state.lookup.isOwner
        totalReaderCount = fetch.totalReaderCount
        isShared = fetch.isShared
        self.isUnusable = isVoid
    }

    /// A peer did not give it to its end.
    var wasPeerTransferLost: Bool { progress.isFromPeer && phase == .failed }
}
