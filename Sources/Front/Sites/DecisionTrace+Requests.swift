import Ground
import HTTPRules
import Serving
import Store
import Wire

/// The request field Nuthatch-Decision, with which an operator asks for the response field of this
/// name.
extension DecisionTrace {
    /// Returns true if the first Nuthatch-Decision field of the request in `parser`, whose head
    /// lies in `bytes`, is `token`.
    static func isRequested(
        by parser: borrowing RequestParser, _ bytes: Span<UInt8>, token: [UInt8]
    ) -> Bool {
        for index in 0..<parser.fields.count {
            let line = parser.fields[index]
            guard isRequest(line, in: bytes) else { continue }
            return bytes.copy(line.value.range).isSame(as: token)
        }
        return false
    }

    /// Returns `lines` without the request field Nuthatch-Decision.
    static func removingRequest(from lines: [FieldLine], in bytes: Span<UInt8>) -> [FieldLine] {
        var kept: [FieldLine] = []
        for line in lines where !isRequest(line, in: bytes) { kept.append(line) }
        return kept
    }

    private static func isRequest(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        line.id == .other && bytes.matchesIgnoringCase("nuthatch-decision", at: line.name.range)
    }
}

extension [UInt8] {
    /// Compares with `token` in a time that does not depend on which byte differs.
    fileprivate func isSame(as token: [UInt8]) -> Bool {
        var difference: UInt8 = count == token.count ? 0 : 1
        for index in token.indices {
            difference |= token[index] ^ (index < count ? self[index] : 0)
        }
        return difference == 0
    }
}

extension DecisionTrace {
    /// Creates the trace of a memory lookup.
    init(
        of query: SiteRequest, _ finding: SiteLookupResult, in store: MemoryStore, now: Instant
    ) {
        self.init()
        key = query.key
        switch finding {
        case .found(let entry, let reuse):
            describe(entry, now: now)
            if entry.headStart != query.key.count {
                variantKey = Array(entry.key.dropFirst(query.key.count))
                variantNames = query.expected(in: store)
            }
            (outcome, reason) = reuse.decisionNames
        case .hitForMiss: (outcome, reason) = ("pass", "answers-not-stored")
        case .miss(let expected):
            variantNames = expected
            (outcome, reason) = ("fetch", expected.isEmpty ? "miss" : "vary-miss")
        }
    }

    /// Creates the trace of an evaluated origin response.
    init(of query: SiteRequest, _ examination: Cacheability, isKept: Bool) {
        self.init()
        key = query.key
        outcome = "fetch"
        lifetimeSeconds = examination.freshness.lifetime.seconds
        lifetimeSource = examination.freshness.source.decisionName
        controlField = examination.controlSource.decisionName
        staleWhileRevalidateSeconds = Int64(examination.staleWhileRevalidateSeconds)
        staleIfErrorSeconds = Int64(examination.staleIfErrorSeconds)
        isStored = isKept
        storageReason =
            examination.notStoredReason?.decisionName ?? (isKept ? "allowed" : "no-room")
    }

    /// Adds the properties of a stored response.
    fileprivate mutating func describe(_ entry: MemoryEntry, now: Instant) {
        let facts = entry.metadata
        ageSeconds = (now - facts.generatedAt).seconds
        lifetimeSeconds = (facts.freshUntil - facts.generatedAt).seconds
        staleWhileRevalidateSeconds = Int64(facts.staleWhileRevalidateSeconds)
        staleIfErrorSeconds = Int64(facts.staleIfErrorSeconds)
        tags = entry.tags
        isStored = true
        if facts.flags.contains(.noCache) { flags.append("no-cache") }
        if facts.flags.contains(.mustRevalidate) { flags.append("must-revalidate") }
        if facts.flags.contains(.immutable) { flags.append("immutable") }
        if facts.flags.contains(.allowsAuthorization) { flags.append("shares-authorized") }
    }
}

extension Reuse {
    /// The outcome and, if that is not sufficient, the reason.
    fileprivate var decisionNames: (String, String?) {
        switch self {
        case .fresh: ("hit", nil)
        case .stale(.maxStale): ("hit-stale", "max-stale")
        case .stale(.whileRevalidate): ("hit-stale", "stale-while-revalidate")
        case .mustValidate(.stale): ("validate", "stale")
        case .mustValidate(.noCache): ("validate", "no-cache")
        case .mustValidate(.requestNoCache): ("validate", "request-no-cache")
        case .mustValidate(.requestMaxAge): ("validate", "request-max-age")
        case .mustValidate(.requestMinFresh): ("validate", "request-min-fresh")
        case .unusable: ("pass", "authorization")
        }
    }
}

extension Freshness.Source {
    /// The name in the Nuthatch-Decision field.
    var decisionName: String {
        switch self {
        case .sMaxAge: "s-maxage"
        case .maxAge: "max-age"
        case .expires: "expires"
        case .negativeTTL: "negative-ttl"
        case .defaultTTL: "default-ttl"
        case .heuristic: "heuristic"
        case .none: "none"
        }
    }
}

extension EffectiveCacheControl.Source {
    /// The name of the field in lower case.
    var decisionName: String {
        switch self {
        case .nuthatch: "nuthatch-cache-control"
        case .cdn: "cdn-cache-control"
        case .cacheControl: "cache-control"
        case .none: "none"
        }
    }
}

extension NotStoredReason {
    /// The name in the Nuthatch-Decision field.
    var decisionName: String {
        switch self {
        case .method: "method"
        case .status(let status): "status-\(status)"
        case .partialContent: "partial-content"
        case .noStore: "no-store"
        case .requestNoStore: "request-no-store"
        case .isPrivate: "private"
        case .authorization: "authorization"
        case .setCookie: "set-cookie"
        case .credentials: "credentials"
        case .varyWildcard: "vary-everything"
        case .contentType: "content-type"
        case .neverReusable: "no-freshness"
        }
    }
}
