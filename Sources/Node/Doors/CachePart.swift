import Telemetry

/// How the cache takes part in an answer: what is counted and logged of it.
enum CacheResult {
    /// Not at all: no image was asked for, or there is a limit against it.
    case none
    case hit
    /// It was on disk.
    case disk
    case miss
    /// Another node had it.
    case peer
    /// It asked the origin whether what is stored is still good.
    case revalidated
    /// It waited for a fetch that another request had caused.
    case collapsed
    /// It was stored and no longer fresh, and was given all the same.
    case stale
    /// It went to the origin and back: nothing of it is for a cache.
    case passed

    var metric: Metric {
        switch self {
        case .none: .requestsGenerated
        case .hit: .requestsHit
        case .disk: .requestsHitOnDisk
        case .miss: .requestsMissed
        case .peer: .requestsFromPeer
        case .revalidated: .requestsRevalidated
        case .collapsed: .requestsCollapsed
        case .stale: .requestsStale
        case .passed: .requestsBypassed
        }
    }

    /// What latencies and bytes are told apart by, and everything of a site.
    @inline(__always)
    var outcome: CacheOutcome {
        switch self {
        case .none: .generated
        case .hit: .hit
        case .disk: .disk
        case .miss: .miss
        case .peer: .peer
        case .revalidated: .revalidated
        case .collapsed: .collapsed
        case .stale: .stale
        case .passed: .bypassed
        }
    }

    /// As the access log has it.
    var text: StaticString {
        switch self {
        case .none: "-"
        case .hit: "hit"
        case .disk: "disk"
        case .miss: "miss"
        case .peer: "peer"
        case .revalidated: "revalidated"
        case .collapsed: "collapsed"
        case .stale: "stale"
        case .passed: "passed"
        }
    }
}
