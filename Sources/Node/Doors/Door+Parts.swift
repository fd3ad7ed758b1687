import Ground
import HTTPRules
import Serving
import Store
import Synchronization
import Telemetry

/// What clients answer for who want parts of what is fetched whole.
extension Door {
    /// Which part of an answer that is being received its client gets: all of it, if so much more
    /// than the part it wants may not be fetched for it.
    func affordable(
        _ selection: Selection, _ waiting: Waiting, _ answer: FillAnswer, of run: FillRun,
        _ view: FillView
    ) -> Selection {
        let isKept = view.phase == .storing
        guard case .parts(let ranges) = selection, answersForRest(waiting, view),
            !answer.isFromDisk
        else { return selection }
        let wanted = ranges.reduce(0) { $0 + $1.count }
        let size = answer.facts.size
        // Several parts wait for the end.
        let isWhole = isKept && (ranges.count > 1 || isWorthAll(size, run, view))
        let fetched = isWhole ? size : ranges.reduce(0) { max($0, $1.last + 1) }
        // A peer may have had it: what was fetched for it is counted there.
        let unread = answer.isFromPeer ? 0 : fetched - min(fetched, wanted)
        guard hall.takeUnread(unread, for: run.client) else {
            hall.counters.add(.originRangesLimited)
            return .whole
        }
        if isKept { run.goOn(unread: isWhole) }
        return selection
    }

    /// True if the whole of `size` bytes is fetched where only a part is wanted.
    private func isWorthAll(_ size: UInt64, _ run: FillRun, _ view: FillView) -> Bool {
        if PartTable.Whole.storable(bytes: size).isSmall { return true }
        // Of a site that was decided before the origin was asked; of an image, whose header has to
        // be seen, its origin is never asked for a part.
        guard run.query.isImage else { return !view.isPart }
        let now = SystemClock.now()
        let isAgain = hall.node.parts.withLock { $0.wanted(run.hash, now: now) } == .whole
        if isAgain { hall.counters.add(.originRangesAgain) }
        return isAgain
    }

    /// True if a client that wants a part may wait for the end of an answer whose length is not
    /// known, rather than get the whole as it comes.
    func mayWait(
        _ waiting: Waiting, _ answer: FillAnswer, of run: FillRun, _ view: FillView
    ) -> Bool {
        guard waiting.facts.contains(.ranged), answer.sizeBytes == nil, !answer.isFromDisk,
            !answer.isFromPeer, answersForRest(waiting, view),
            !hall.mayFetchUnread(for: run.client)
        else { return true }
        hall.counters.add(.originRangesLimited)
        return false
    }

    /// Has the client answer for what it does not want of an entry that was fetched for it; false
    /// if it gets all of it in the stead of that.
    func paysForRest(
        _ waiting: Waiting, _ run: FillRun, _ view: FillView, _ resident: Resident
    ) -> Bool {
        guard resident.status == 200, waiting.facts.contains(.ranged),
            answersForRest(waiting, view),
            case .parts(let ranges) = select(
                waiting.request, waiting.facts, of: resident.facts, RenderedHead(resident))
        else { return true }
        let wanted = ranges.reduce(0) { $0 + $1.count }
        let size = view.known.isFromPeer ? wanted : resident.facts.size
        if hall.takeUnread(size - min(size, wanted), for: run.client) { return true }
        hall.counters.add(.originRangesLimited)
        return false
    }

    /// The request has caused the fetch, which asks an origin or a peer, and whose rest nobody has
    /// answered for yet.
    private func answersForRest(_ waiting: Waiting, _ view: FillView) -> Bool {
        waiting.isFirst && !view.known.isPaid && (view.wasAsked || view.known.isFromPeer)
    }
}
