import Ground
import HTTPRules
import Platform
import Serving
import Store
import Synchronization
import Telemetry

/// What a client is charged for the bytes of a response that are fetched for its range request and
/// that it does not ask for.
struct RangeCharge {
    private let context: EventLoopContext
    private let run: ActiveFetch
    private let view: FetchSnapshot
    private let facts: RequestTraits
    /// True if the request caused a fetch from an origin or a peer whose rest was not charged yet.
    private let isDue: Bool

    /// Creates the charge for a request in the state `view` of its fetch.
    ///
    /// - Parameters:
    ///   - facts: the traits of the request.
    ///   - isInitiator: true if the request started the fetch.
    ///   - run: the fetch.
    ///   - view: the state of the fetch.
    ///   - context: the context of the request's loop.
    init(
        _ facts: RequestTraits, isInitiator: Bool, _ run: ActiveFetch, _ view: FetchSnapshot,
        on context: EventLoopContext
    ) {
        self.context = context
        self.run = run
        self.view = view
        self.facts = facts
        isDue =
            isInitiator && !view.progress.isChargedToClient
            && (view.hasContactedOrigin || view.progress.isFromPeer)
    }

    /// Charges the client for the excess over the requested part, if due, and returns the selection
    /// to send: the complete response if its allowance does not cover the excess.
    func affordable(_ selection: Selection, of response: FetchedResponse) -> Selection {
        let isKept = view.phase == .storing
        guard case .parts(let ranges) = selection, isDue, !response.isFromDisk else {
            return selection
        }
        let wanted = ranges.reduce(0) { $0 + $1.count }
        let size = response.metadata.size
        // Several ranges are sent after the end of the body.
        let isWhole = isKept && (ranges.count > 1 || isWholeWorthFetching(size))
        let fetched = isWhole ? size : ranges.reduce(0) { max($0, $1.last + 1) }
        // Bytes that a peer has fetched are charged there.
        let unread = response.isFromPeer ? 0 : fetched - min(fetched, wanted)
        guard context.chargeUnread(unread, for: run.client) else {
            context.counters.add(.originRangesLimited)
            return .whole
        }
        if isKept { run.chargeToClient(continuesUnread: isWhole) }
        return selection
    }

    /// Returns true if the complete `size` bytes are fetched although only a part is requested;
    /// counts a range request for an image.
    private func isWholeWorthFetching(_ size: UInt64) -> Bool {
        if RangeRequestHistory.Storability.storable(bytes: size).isSmall { return true }
        // For a site this was decided before the origin was contacted. The origin of an image is
        // never asked for a part, because the image's header must be inspected.
        guard run.siteRequest.isImage else { return !view.isPart }
        let now = SystemClock.now()
        let isAgain =
            context.node.parts.withLock { $0.recordPartRequest(run.hash, now: now) } == .whole
        if isAgain { context.counters.add(.originRangesRepeated) }
        return isAgain
    }

    /// Returns true if a range request may wait for the end of a body of unknown length; otherwise
    /// it receives the complete body as it arrives.
    func mayWaitForEnd(of response: FetchedResponse) -> Bool {
        guard facts.contains(.ranged), response.sizeBytes == nil, !response.isFromDisk,
            !response.isFromPeer, isDue, !context.mayFetchUnread(for: run.client)
        else { return true }
        context.counters.add(.originRangesLimited)
        return false
    }

    /// Charges the client for the rest of an entry of which `request` selects a part; returns false
    /// if its allowance is exhausted, so that it is sent everything instead.
    func covers(_ entry: MemoryEntry, for request: BufferedRequest) -> Bool {
        guard entry.status == 200, facts.contains(.ranged), isDue,
            case .parts(let ranges) = request.selection(
                facts, of: entry.metadata, RenderedHead(entry),
                rangesMax: context.settings.rangesMax)
        else { return true }
        let wanted = ranges.reduce(0) { $0 + $1.count }
        let size = view.progress.isFromPeer ? wanted : entry.metadata.size
        if context.chargeUnread(size - min(size, wanted), for: run.client) { return true }
        context.counters.add(.originRangesLimited)
        return false
    }
}
