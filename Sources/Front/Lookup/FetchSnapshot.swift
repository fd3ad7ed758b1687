import HTTPRules
import Serving
import Store

/// The state of a fetch at one instant, for its readers and its source.
struct FetchSnapshot: Sendable {
    /// The response, as far as it is known.
    enum Outcome: Sendable {
        /// No response yet.
        case pending
        /// The head is known and the body in progress.
        case receiving(FetchedResponse)
        /// Complete as an entry, new or validated.
        case stored(MemoryEntry)
        /// Complete from disk, as an entry in memory.
        case loadedFromDisk(MemoryEntry)
        /// Failed, with the problem to serve.
        case failed(Problem)
    }

    /// Reason why a stored response stands in for the origin's.
    struct StaleFallback: Sendable {
        /// Status with which the origin failed; `nil` if it sent no response.
        let status: UInt16?
    }

    /// The progress of a fetch.
    struct Progress: Sendable {
        /// The response, as far as it is known.
        var outcome = Outcome.pending
        /// The stored response being revalidated; `nil` if there is none.
        var staleEntry: MemoryEntry?
        /// True if the complete response may be stored.
        var isStored = true
        /// True if the response comes from a peer.
        var isFromPeer = false
        /// True once the client that caused the fetch was charged for bytes that it does not read.
        var isChargedToClient = false
        /// True if the origin has validated the stored response.
        var isValidated = false
        /// Set if the origin failed and the stale response stands in.
        var staleFallback: StaleFallback?
        /// The response as the causing request receives it, if it differs from the stored one.
        var requesterResponse: FetchedResponse?
        /// Result of the caching rules for a site's response.
        var cacheability: Cacheability?
        /// True if later requests for the key will probably not be served from the cache either.
        var isHitForMiss = false
        /// True if a peer has sent the response with fields for the causing request only, and
        /// stores it without them.
        var isRequesterSpecific = false
        /// Trailer section (RFC 9110 §6.5), as field lines with their line ends.
        var trailers: [UInt8] = []
    }

    /// Progress of the response.
    let progress: Progress
    /// Phase of the fetch.
    let phase: Fetch.Phase
    /// True if the fetch is limited to the part that its first reader requests.
    let isPart: Bool
    /// True if the origin was contacted.
    let hasContactedOrigin: Bool
    /// True if a peer waits for the response.
    let hasWaitingPeer: Bool
    /// Number of readers that have ever joined.
    let totalReaderCount: Int
    /// True if the response may be served to every request, as far as is known.
    let isShared: Bool
    /// True if the response must no longer be served, even if it was valid on arrival.
    let isUnusable: Bool

    /// Creates a snapshot of `state`; `isVoid` becomes ``isUnusable``.
    init(_ state: borrowing FetchState, isVoid: Bool) {
        let fetch = state.lookup.fetch
        progress = state.progress
        phase = fetch.phase
        isPart = fetch.isPart
        hasContactedOrigin = state.originFetchStartedAt != nil
        hasWaitingPeer = state.lookup.isOwner
        totalReaderCount = fetch.totalReaderCount
        isShared = fetch.isShared
        self.isUnusable = isVoid
    }

    /// True if a peer broke off the transfer.
    var wasPeerTransferLost: Bool { progress.isFromPeer && phase == .failed }
}
