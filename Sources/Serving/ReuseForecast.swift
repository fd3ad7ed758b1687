package import Cluster
package import Ground
import HTTPRules

/// What a request that asks for nothing special would get of a stored answer at one moment.
///
/// Decided by what decides requests, so that operators are told what would be done.
package enum ReuseForecast: Hashable, Sendable {
    /// It is given, and fresh for so long yet.
    case fresh(Interval)
    /// It is given though it has not been fresh for so long, and validated meanwhile.
    case stale(Interval)
    /// The origin is asked first.
    case mustValidate(Reason)
    /// It is as if it were not there.
    case refetch

    package enum Reason: Hashable, Sendable {
        /// The node may lack a purge, and the origin was not asked of late.
        case fenced
        /// Its origin wants to be asked each time.
        case noCache
        case softPurged
        /// It has not been fresh for so long.
        case stale(Interval)
    }

    /// What purges have made of an answer.
    package enum PurgeEffect: Hashable, Sendable {
        case hard
        /// It is stale since then.
        case soft(since: Instant)
    }

    /// What would be done with an answer.
    ///
    /// - Parameters:
    ///   - facts: as they are stored.
    ///   - policy: by which it is given.
    ///   - purge: what no request has made of the entry yet; nil for nothing.
    ///   - window: says whether the node is proven current; see
    ///     ``EntryMetadata/fenced(by:_:now:)``.
    ///   - fence: for how long a validation counts while it is not.
    ///   - now: when the request would come.
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
    /// As they are once `purge` is met, at `now` at the latest.
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
