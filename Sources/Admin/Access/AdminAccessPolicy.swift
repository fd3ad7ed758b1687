package import HTTPRules

/// The rules that decide what each caller of the admin port may do.
///
/// Without tokens and without issuers of client certificates every caller may do everything; the
/// port then listens on loopback only. With either, every caller must authenticate, on loopback
/// too: a proxy in front of a node may forward requests from elsewhere.
package struct AdminAccessPolicy: Hashable, Sendable {
    /// A configured token and its role.
    package struct Grant: Hashable, Sendable {
        /// The role that the token confers.
        package var role: AdminRole
        /// The digest of the token; the token itself is not kept.
        package var digest: TokenDigest

        /// Creates a grant of `role` for the token with `digest`.
        package init(_ role: AdminRole, _ digest: TokenDigest) {
            self.role = role
            self.digest = digest
        }
    }

    /// The tokens that are accepted; empty if none is configured.
    package var grants: [Grant]

    /// Creates a policy that accepts the tokens of `grants`; without any, callers need no token.
    package init(grants: [Grant] = []) {
        self.grants = grants
    }

    /// The outcome of an access check; ``allowed(_:)`` carries the caller's role.
    package enum Authorization: Hashable, Sendable {
        case allowed(AdminRole)
        case denied(AdminAccessError)
    }

    /// Returns whether `caller` may call an operation that needs `role`; with `nil` everybody may,
    /// with the role read.
    package func authorize(_ caller: AdminCaller, for role: AdminRole?) -> Authorization {
        guard let role else { return .allowed(.read) }
        if caller.isCrossSite { return .denied(.crossSite) }
        switch self.role(of: caller) {
        case .failure(let refusal): return .denied(refusal)
        case .success(let has):
            return has >= role ? .allowed(has) : .denied(.insufficientRole(has, role))
        }
    }

    /// Returns the role of `caller`, or the reason why it has none.
    private func role(of caller: AdminCaller) -> Result<AdminRole, AdminAccessError> {
        switch caller.credential {
        case .certificate: return .success(.admin)
        case .token(let digest):
            // All digests are compared, so that the time does not reveal which one matched.
            var found: AdminRole?
            for grant in grants where digest.isAmong([grant.digest]) { found = grant.role }
            if let found { return .success(found) }
            return .failure(grants.isEmpty ? .tokensNotConfigured : .tokenUnknown)
        case .malformed: return .failure(.tokenMalformed)
        case .none where !grants.isEmpty: return .failure(.tokenMissing)
        case .none where !caller.hasAddressAuthority:
            return .failure(.hostNotAllowed(caller.authority))
        case .none: return .success(.admin)
        }
    }
}

/// The reason why the admin port refuses a request; nothing was done.
package enum AdminAccessError: Error, Hashable, Sendable {
    case tokenMissing
    case tokenMalformed
    case tokenUnknown
    /// A token was sent, but this node has no tokens configured.
    case tokensNotConfigured
    /// A wrong token was sent after too many others from this address.
    case attemptRateExceeded(retryAfterSeconds: Int)
    /// The token is valid, but has been used for too many reports recently.
    case reportRateExceeded(retryAfterSeconds: Int)
    /// The caller has the first role, but the operation needs the second.
    case insufficientRole(AdminRole, AdminRole)
    case crossSite
    /// The request's authority is a name that anybody can point at this machine in DNS.
    case hostNotAllowed([UInt8])
}

extension AdminAccessError {
    /// True if the refusal counts as a failed guess of a token.
    package var isFailedAttempt: Bool { self == .tokenUnknown || self == .tokenMalformed }

    /// The time in seconds after which a retry may succeed; `nil` if waiting does not help.
    package var retryAfterSeconds: Int? {
        switch self {
        case .attemptRateExceeded(let seconds), .reportRateExceeded(let seconds): seconds
        default: nil
        }
    }

    /// The value of WWW-Authenticate, where a token would be enough (RFC 6750 §3).
    package var challenge: String? {
        switch self {
        case .tokenMissing: "Bearer realm=\"admin\""
        case .tokenUnknown, .tokenMalformed: "Bearer realm=\"admin\", error=\"invalid_token\""
        case .insufficientRole(_, let needed):
            "Bearer realm=\"admin\", error=\"insufficient_scope\", scope=\"\(needed.rawValue)\""
        case .tokensNotConfigured, .attemptRateExceeded, .reportRateExceeded, .crossSite,
            .hostNotAllowed:
            nil
        }
    }

    /// The problem document (RFC 9457) for this refusal: status 401, 403, 421 or 429.
    package var problem: ProblemDocument {
        switch self {
        case .tokenMissing:
            Self.problem(
                401, "admin-token", "A token is required",
                "Send Authorization: Bearer with an admin token.")
        case .tokenMalformed:
            Self.problem(
                401, "admin-token", "The token is malformed",
                "Authorization must be given once and consist of Bearer, a space and a token.")
        case .tokenUnknown:
            Self.problem(
                401, "admin-token", "Unknown token",
                "The file named by admin-token-file does not contain it; after a change of the "
                    + "file, send SIGHUP to the node.")
        case .tokensNotConfigured:
            Self.problem(
                401, "admin-token", "This node accepts no tokens",
                "admin-token-file is not set; requests from this machine need no token.")
        case .attemptRateExceeded(let seconds):
            Self.problem(
                429, "admin-attempts", "Too many wrong tokens",
                "The token is unknown, and others from this address were too: further responses "
                    + "are delayed for another \(seconds) s.")
        case .reportRateExceeded(let seconds):
            Self.problem(
                429, "admin-reports", "Too many reports",
                "The rate of reports is limited for tokens without the role admin; "
                    + "the next one is possible in \(seconds) s.")
        case .insufficientRole(let has, let needed):
            Self.problem(
                403, "admin-role", "The token's role does not allow this",
                "This requires the role \(needed.rawValue), and the token has \(has.rawValue).")
        case .crossSite:
            Self.problem(
                403, "admin-cross-site", "Cross-site request",
                "Sec-Fetch-Site or Origin names another site.")
        case .hostNotAllowed(let authority):
            Self.problem(
                421, "admin-host", "The node does not serve this host name",
                "Host is \(String(decoding: authority.prefix(256), as: UTF8.self)); without a "
                    + "token it must be an address or localhost.")
        }
    }

    /// Returns a problem document that also says that nothing was done.
    private static func problem(
        _ status: UInt16, _ name: String, _ title: String, _ detail: String
    ) -> ProblemDocument {
        ProblemDocument(
            status: status, name: name, title: title, detail: detail + " Nothing was done.")
    }
}

/// The role of a caller of the admin port; each role includes those before it.
package enum AdminRole: String, CaseIterable, Comparable, Sendable {
    /// May read everything, and change nothing.
    case read
    /// May also purge and prefetch entries.
    case purge
    /// May also take nodes out of service, and change how they work.
    case admin

    /// The position among the roles, the least first.
    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// Returns true if `one` has fewer rights than `other`.
    package static func < (one: AdminRole, other: AdminRole) -> Bool { one.rank < other.rank }
}
