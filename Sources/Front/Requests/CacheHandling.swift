import Ground
import HTTPRules
import Serving
import Telemetry

/// How the cache handled a request, as Cache-Status reports it (RFC 9211).
enum CacheHandling: Hashable {
    /// Served fresh from the store.
    case hit(Tier)
    /// Served from the store although no longer fresh.
    case stale(Tier)
    /// Served from the store because the origin failed, with this status if it responded.
    case staleIfError(Reason, status: UInt16?)
    /// Forwarded to a peer or the origin; `isStored` and `isCollapsed` as known when the head is
    /// sent.
    case forwarded(
        Reason, status: UInt16, isStored: Bool, isCollapsed: Bool, isFromPeer: Bool)

    /// True if the response came fresh from the store.
    @inline(__always)
    var isHit: Bool {
        if case .hit = self { true } else { false }
    }

    /// The tier that held the response.
    enum Tier: Hashable {
        case memory
        case disk
    }

    /// Reason for forwarding (RFC 9211 §2.2).
    typealias Reason = CacheStatus.Reason

    /// Returns the Cache-Status member for a response that involved the origin; `nil` for one from
    /// the store, whose line is written directly.
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
    /// Appends all field lines that differ between responses of one entry, and the end of the head.
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

extension CacheOutcome {
    /// The metric that counts requests with this outcome.
    var metric: Metric {
        switch self {
        case .generated: .requestsGenerated
        case .hit: .requestsHit
        case .disk: .requestsHitOnDisk
        case .miss: .requestsMissed
        case .peer: .requestsFromPeer
        case .revalidated: .requestsRevalidated
        case .collapsed: .requestsCollapsed
        case .stale: .requestsStale
        case .bypassed: .requestsBypassed
        }
    }

    /// The text in the access log.
    var logText: StaticString {
        switch self {
        case .generated: "-"
        case .hit: "hit"
        case .disk: "disk"
        case .miss: "miss"
        case .peer: "peer"
        case .revalidated: "revalidated"
        case .collapsed: "collapsed"
        case .stale: "stale"
        case .bypassed: "passed"
        }
    }
}
