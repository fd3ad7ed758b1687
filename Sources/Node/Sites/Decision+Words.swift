import HTTPRules

extension Freshness.Source {
    /// As a decision names it.
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
    /// The name of the field.
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
    /// As a decision names it.
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
