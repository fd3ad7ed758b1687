package import Cluster
package import Ground
import HTTPRules

/// The outcome that a request without special fields would have for a stored response at one
/// instant.
///
/// Computed with the same functions that decide requests, for display to operators.
package enum ReuseForecast: Hashable, Sendable {
    /// Served, and fresh for this time.
    case fresh(Interval)
    /// Served although stale for this time, and revalidated meanwhile.
    case stale(Interval)
    /// Served only after revalidation.
    case mustValidate(Reason)
    /// Fetched again as if the response were not stored.
    case refetch

    /// The reason for revalidation.
    package enum Reason: Hashable, Sendable {
        /// The node may lack a purge, and the origin was not asked recently.
        case fenced
        /// The response has `no-cache`.
        case noCache
        /// A soft purge covers the response.
        case softPurged
        /// The response has been stale for this time.
        case stale(Interval)
    }

    /// The effect of purges on a response.
    package enum PurgeEffect: Hashable, Sendable {
        /// The response must not be used.
        case hard
        /// The response is stale since this instant.
        case soft(since: Instant)
    }

    /// Computes the outcome for a stored response.
    ///
    /// - Parameters:
    ///   - facts: the stored facts.
    ///   - policy: the site's policy.
    ///   - purge: the effect of purges that no request has yet applied to the entry; `nil` for
    ///     none.
    ///   - window: the state of the fence; see ``EntryMetadata/fenced(by:_:now:)``.
    ///   - fence: the time for which a validation counts while the fence is closed.
    ///   - now: the instant of the request.
    package init(
        _ facts: EntryMetadata, by policy: ReusePolicy, purge: PurgeEffect?, window: FenceWindow,
        fence: Interval,
        now: Instant
    ) {
        if purge == .hard {
            self = .refetch
            return
        }
        var counted = facts.applying(purge, at: now)
        let isPurged =
            counted.freshUntil < facts.generatedAt || counted.freshUntil < facts.freshUntil
        if now >= window.currentUntil { counted = counted.fenced(by: window, fence, now: now) }
        let use = reuse(counted, for: .none, hasAuthorization: false, policy: policy, now: now)
        if case .stale = use {
            self = .stale(now - counted.freshUntil)
        } else if use == .fresh {
            self = .fresh(counted.freshUntil - now)
        } else if counted.flags.contains(.isFenced) {
            self = .mustValidate(.fenced)
        } else if counted.flags.contains(.noCache) {
            self = .mustValidate(.noCache)
        } else if isPurged {
            self = .mustValidate(.softPurged)
        } else {
            self = .mustValidate(.stale(now - counted.freshUntil))
        }
    }
}

extension EntryMetadata {
    /// Returns the facts of a response that became stale at the purge, if not before; a hard purge
    /// counts from `now`, and `nil` changes nothing.
    package func applying(_ purge: ReuseForecast.PurgeEffect?, at now: Instant) -> EntryMetadata {
        var counted = self
        switch purge {
        case .hard: counted.freshUntil = min(freshUntil, now)
        case .soft(let since): counted.freshUntil = min(freshUntil, since)
        case nil: break
        }
        return counted
    }
}
