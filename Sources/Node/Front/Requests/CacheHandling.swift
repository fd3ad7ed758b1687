import Ground
import HTTPRules
import Serving
import Telemetry

/// What Cache-Status says of an answer (RFC 9211), and how it came about.
enum CacheHandling: Hashable {
    case hit(Tier)
    /// Stored and no longer fresh, and given all the same.
    case stale(Tier)
    /// The origin was asked and failed, with this status if it answered; what is stored was given
    /// in its stead.
    case staleIfError(Reason, status: UInt16?)
    /// Forwarded, to a peer or to the origin; `isStored` and `isCollapsed` as far as they are known
    /// when the head is sent.
    case forwarded(
        Reason, status: UInt16, isStored: Bool, isCollapsed: Bool, isFromPeer: Bool)

    /// The store alone has given the answer, fresh.
    @inline(__always)
    var isHit: Bool {
        if case .hit = self { true } else { false }
    }

    enum Tier: Hashable {
        case memory
        case disk
    }

    typealias Reason = CacheStatus.Reason

    /// What is said of an answer that the origin was asked for; nil of one that comes from the
    /// store alone, which says it shorter.
    func status(_ facts: EntryMetadata, key: [UInt8]?, now: Instant) -> CacheStatus? {
        let left = (facts.freshUntil - now).seconds
        switch self {
        case .hit, .stale: return nil
        case .staleIfError(let reason, let status):
            var member = CacheStatus(.forwarded(reason))
            member.forwardStatus = status
            member.ttl = left
            member.key = key
            member.detail = "stored"
            return member
        case .forwarded(let reason, let status, let isStored, let isCollapsed, let isFromPeer):
            var member = CacheStatus(.forwarded(reason))
            member.forwardStatus = status
            if isStored { member.ttl = left }
            member.isStored = isStored
            member.isCollapsed = isCollapsed
            member.key = key
            member.detail = isFromPeer ? "peer" : "origin"
            return member
        }
    }
}

extension HeadWriter {
    /// All lines that differ from one answer of an entry to the next, and the end of the head.
    @inline(__always)
    mutating func appendTail(
        _ facts: EntryMetadata, handling: CacheHandling, date: DateLine,
        _ connection: ConnectionOption,
        now: Instant
    ) {
        let age = now - facts.generatedAt
        switch handling {
        case .hit(let tier):
            if !facts.flags.hasDate { append(date.bytes) }
            appendAge(age)
            append("Cache-Status: nuthatch; hit; ttl=")
            append(UInt64(max(0, (facts.freshUntil - now).seconds)))
            append(tier == .memory ? "; detail=memory\r\n" : "; detail=disk\r\n")
        case .stale(let tier):
            if !facts.flags.hasDate { append(date.bytes) }
            appendAge(age)
            append("Cache-Status: nuthatch; hit; ttl=-")
            append(UInt64(max(0, (now - facts.freshUntil).seconds)))
            append(tier == .memory ? "; detail=memory\r\n" : "; detail=disk\r\n")
        case .staleIfError:
            if !facts.flags.hasDate { append(date.bytes) }
            appendAge(age)
        case .forwarded:
            if !facts.flags.hasDate { append(date.bytes) }
            if age.seconds > 0 { appendAge(age) }
        }
        append(connection)
        append("\r\n")
    }
}

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
