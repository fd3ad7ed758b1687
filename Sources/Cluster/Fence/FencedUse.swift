package import Ground

/// What may be done with an entry, as far as the fence is concerned.
///
/// A node that is not proven current may lack a purge. It knows one thing all the same: what the
/// origin has validated in answer to a request that began at some instant was not purged before
/// that instant, so that for one ``Fence/Settings/fence`` after it nothing is served too late.
package enum FenceDecision: Hashable, Sendable {
    /// The fence is open: the entry is judged as always.
    case unrestricted
    /// Validated so recently that it is judged as always, until then.
    case unrestrictedUntil(Instant)
    /// Ask the origin first. If it fails, and at that instant the fence is still closed, the entry
    /// may be served stale before `staleUntil`, where nothing else forbids it; without one, or
    /// after it: 504.
    case revalidate(staleUntil: Instant?)

    /// By the clock's present reading, which is not to be kept from one decision to the next.
    ///
    /// `validatedAt` is when the **request** began that the origin last answered with this entry or
    /// with its validation, on this node's boot clock; of an entry that a peer sent, when the peer
    /// was asked, minus the age of the validation that it named. `staleIfError` is how long after
    /// the fence closed the entry may be served if the origin fails; nil if that is not granted.
    package static func decide(
        now: Instant, window: FenceWindow, validatedAt: Instant, fence: Interval,
        staleIfError: Interval?
    ) -> FenceDecision {
        if window.isCurrent(at: now) { return .unrestricted }
        let until = validatedAt + fence
        // A validation from the future is of another clock.
        if now < until, validatedAt <= now { return .unrestrictedUntil(until) }
        let end = staleIfError.map { min(window.closedAt, now) + $0 }
        return .revalidate(staleUntil: end.flatMap { now < $0 ? $0 : nil })
    }
}
