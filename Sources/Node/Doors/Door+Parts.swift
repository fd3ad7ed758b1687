import Ground
import HTTPRules
import Serving
import Store
import Synchronization
import Telemetry

/// What clients answer for who want parts of what is fetched whole.
extension RequestHandler {
    /// Which part of an answer that is being received its client gets: all of it, if so much more
    /// than the part it wants may not be fetched for it.
    func affordableSelection(
        _ selection: Selection, _ waiting: PendingResponse, _ response: FetchedResponse,
        of run: ActiveFetch,
        _ view: FetchSnapshot
    ) -> Selection {
        let isKept = view.phase == .storing
        guard case .parts(let ranges) = selection, isChargeableForRest(waiting, view),
            !response.isFromDisk
        else { return selection }
        let wanted = ranges.reduce(0) { $0 + $1.count }
        let size = response.metadata.size
        // Several parts wait for the end.
        let isWhole = isKept && (ranges.count > 1 || isWholeWorthFetching(size, run, view))
        let fetched = isWhole ? size : ranges.reduce(0) { max($0, $1.last + 1) }
        // A peer may have had it: what was fetched for it is counted there.
        let unread = response.isFromPeer ? 0 : fetched - min(fetched, wanted)
        guard context.chargeUnread(unread, for: run.client) else {
            context.counters.add(.originRangesLimited)
            return .whole
        }
        if isKept { run.chargeToClient(continuesUnread: isWhole) }
        return selection
    }

    /// True if the whole of `size` bytes is fetched where only a part is wanted.
    private func isWholeWorthFetching(_ size: UInt64, _ run: ActiveFetch, _ view: FetchSnapshot)
        -> Bool
    {
        if RangeRequestHistory.Storability.storable(bytes: size).isSmall { return true }
        // Of a site that was decided before the origin was asked; of an image, whose header has to
        // be seen, its origin is never asked for a part.
        guard run.siteRequest.isImage else { return !view.isPart }
        let now = SystemClock.now()
        let isAgain =
            context.node.parts.withLock { $0.recordPartRequest(run.hash, now: now) } == .whole
        if isAgain { context.counters.add(.originRangesRepeated) }
        return isAgain
    }

    /// True if a client that wants a part may wait for the end of an answer whose length is not
    /// known, rather than get the whole as it comes.
    func mayWaitForEnd(
        _ waiting: PendingResponse, _ response: FetchedResponse, of run: ActiveFetch,
        _ view: FetchSnapshot
    ) -> Bool {
        guard waiting.facts.contains(.ranged), response.sizeBytes == nil, !response.isFromDisk,
            !response.isFromPeer, isChargeableForRest(waiting, view),
            !context.mayFetchUnread(for: run.client)
        else { return true }
        context.counters.add(.originRangesLimited)
        return false
    }

    /// Has the client answer for what it does not want of an entry that was fetched for it; false
    /// if it gets all of it in the stead of that.
    func chargeForRest(
        _ waiting: PendingResponse, _ run: ActiveFetch, _ view: FetchSnapshot, _ entry: MemoryEntry
    ) -> Bool {
        guard entry.status == 200, waiting.facts.contains(.ranged),
            isChargeableForRest(waiting, view),
            case .parts(let ranges) = select(
                waiting.request, waiting.facts, of: entry.metadata, RenderedHead(entry))
        else { return true }
        let wanted = ranges.reduce(0) { $0 + $1.count }
        let size = view.progress.isFromPeer ? wanted : entry.metadata.size
        if context.chargeUnread(size - min(size, wanted), for: run.client) { return true }
        context.counters.add(.originRangesLimited)
        return false
    }

    /// The request has caused the fetch, which asks an origin or a peer, and whose rest nobody has
    /// answered for yet.
    private func isChargeableForRest(_ waiting: PendingResponse, _ view: FetchSnapshot) -> Bool {
        waiting.isInitiator && !view.progress.isChargedToClient
            && (view.hasContactedOrigin || view.progress.isFromPeer)
    }
}
