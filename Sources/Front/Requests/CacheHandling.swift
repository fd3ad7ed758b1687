import Ground
import HTTPRules
import Platform
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

    /// Returns the Cache-Status member for a response that involved a peer or the origin; `nil` for
    /// one from the store, whose line is written directly.
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

/// How the cache takes part in a response that waits for a fetch: what Cache-Status and the metrics
/// report of it.
struct ForwardingRecord {
    /// Reason for forwarding.
    var reason: CacheHandling.Reason
    /// True if another request started the fetch.
    private(set) var isCollapsed = false
    /// True if this request started the fetch.
    private(set) var isInitiator = false
    /// The result that the metrics count.
    private(set) var outcome = CacheOutcome.generated

    /// Creates the record of a request that waits for no fetch yet.
    init(reason: CacheHandling.Reason) {
        self.reason = reason
    }

    /// Records that the request has joined a fetch that another request started.
    mutating func joined() {
        (isCollapsed, isInitiator) = (true, false)
        outcome = .collapsed
    }

    /// Records that the request has started a fetch.
    ///
    /// - Parameters:
    ///   - query: the request.
    ///   - isValidation: true if the fetch revalidates a stored response.
    mutating func started(by query: SiteRequest, isValidation: Bool) {
        (isCollapsed, isInitiator) = (false, true)
        outcome = query.mode == .verbatim ? .bypassed : isValidation ? .revalidated : .miss
        if isValidation { storedWasStale(for: query) }
    }

    /// Sets the reason to a stale stored response; for a site, only if it was a key without an
    /// entry.
    private mutating func storedWasStale(for query: SiteRequest) {
        if query.isImage || reason == .uriMiss { reason = .stale }
    }

    /// Records the result of a fetched response.
    ///
    /// - Parameters:
    ///   - known: the progress of the fetch.
    ///   - status: the status received; 304 for a stored response that was confirmed.
    ///   - isStored: true if the response is stored.
    ///   - query: the request.
    /// - Returns: the handling of the response.
    mutating func forwarded(
        _ known: FetchSnapshot.Progress, status: UInt16, isStored: Bool, for query: SiteRequest
    ) -> CacheHandling {
        if known.staleEntry != nil {
            storedWasStale(for: query)
            if !isCollapsed { outcome = .revalidated }
        }
        // A response that another node had is not a miss of the cluster.
        if known.isFromPeer, outcome == .miss { outcome = .peer }
        return .forwarded(
            reason, status: status, isStored: isStored, isCollapsed: isCollapsed,
            isFromPeer: known.isFromPeer)
    }

    /// Returns the handling of a response that is still being received, and records its result;
    /// `nil` if it is a stale one that the request forbids.
    mutating func receiving(
        _ received: FetchedResponse, _ known: FetchSnapshot.Progress, for query: SiteRequest
    ) -> CacheHandling? {
        if let fallback = known.staleFallback {
            return stoodIn(fallback, received.metadata, for: query)
        }
        if received.isFromDisk {
            outcome = .disk
            return .hit(.disk)
        }
        return forwarded(
            known, status: received.head.status, isStored: received.isKept, for: query)
    }

    /// Returns the handling of a stale response with these facts that stands in for the origin's,
    /// and records its result; `nil` if the request does not accept it.
    mutating func stoodIn(
        _ fallback: FetchSnapshot.StaleFallback, _ facts: EntryMetadata, for query: SiteRequest
    ) -> CacheHandling? {
        guard query.isUsableOnError(facts, now: SystemClock.now()) else { return nil }
        outcome = .stale
        return .staleIfError(reason, status: fallback.status)
    }

    /// Returns the Cache-Status of an error response.
    ///
    /// - Parameters:
    ///   - problem: the error.
    ///   - view: the state of the fetch; `nil` without one.
    ///   - isFenced: true if the node's fence is closed.
    ///   - key: the key to report; `nil` for an image.
    /// - Returns: the Cache-Status of the error response.
    func status(
        of problem: Problem, _ view: FetchSnapshot?, isFenced: Bool, key: [UInt8]?
    ) -> CacheStatus {
        guard let view, view.hasContactedOrigin || problem.originStatus != nil else {
            return CacheStatus(.generated)
        }
        var status = CacheStatus(.forwarded(reason))
        status.forwardStatus = problem.originStatus
        status.isCollapsed = isCollapsed
        status.isFenced = isFenced
        status.key = key
        status.detail = view.hasContactedOrigin ? "origin" : "peer"
        return status
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
