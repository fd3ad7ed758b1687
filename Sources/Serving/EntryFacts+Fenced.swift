package import Cluster
package import Ground

extension EntryMetadata {
    /// As they count for a decision at `now`, while the node may lack a purge (DESIGN.md §7 "Fenced
    /// unless proven current").
    ///
    /// The same facts where the fence is open, or where the origin has validated them within the
    /// last `fence`. Else they are stale since the fence closed, and ``EntryFlags/isFenced``: the
    /// origin has to be asked, and only for its failing may they be used, where that is granted.
    package func fenced(by window: FenceWindow, _ fence: Interval, now: Instant) -> EntryMetadata {
        let use = FenceDecision.decide(
            now: now, window: window, validatedAt: validatedAt, fence: fence, staleIfError: nil)
        guard case .revalidate = use else { return self }
        var facts = self
        facts.freshUntil = min(freshUntil, window.closedAt, now)
        facts.staleWhileRevalidateSeconds = 0
        facts.flags.insert(.isFenced)
        return facts
    }
}
