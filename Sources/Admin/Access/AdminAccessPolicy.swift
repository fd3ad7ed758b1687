package import HTTPRules

/// Who may do what on the admin port.
///
/// Without tokens and without issuers of certificates whoever reaches the port may do everything;
/// it is on loopback then. With either, everybody has to prove who they are, on loopback too: what
/// stands before a node may pass on what comes from elsewhere.
package struct AdminAccessPolicy: Hashable, Sendable {
    /// What a token is good for.
    package struct Grant: Hashable, Sendable {
        package var role: AdminRole
        package var digest: TokenDigest

        package init(_ role: AdminRole, _ digest: TokenDigest) {
            self.role = role
            self.digest = digest
        }
    }

    package var grants: [Grant]

    package init(grants: [Grant] = []) {
        self.grants = grants
    }

    package enum Authorization: Hashable, Sendable {
        case allowed(AdminRole)
        case denied(AdminAccessError)
    }

    /// Whether `caller` may do what takes `role`; nil for what everybody may.
    package func authorize(_ caller: AdminCaller, for role: AdminRole?) -> Authorization {
        guard let role else { return .allowed(.read) }
        if caller.isCrossSite { return .denied(.crossSite) }
        switch self.role(of: caller) {
        case .failure(let refusal): return .denied(refusal)
        case .success(let has):
            return has >= role ? .allowed(has) : .denied(.insufficientRole(has, role))
        }
    }

    /// What the caller may do at most.
    private func role(of caller: AdminCaller) -> Result<AdminRole, AdminAccessError> {
        switch caller.credential {
        case .certificate: return .success(.admin)
        case .token(let digest):
            // All are compared, so that the time tells nothing of which was right.
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

/// Why the admin port does not do what it was asked; nothing was done.
package enum AdminAccessError: Error, Hashable, Sendable {
    case tokenMissing
    case tokenMalformed
    case tokenUnknown
    /// A token came, and this node has none to compare it with.
    case tokensNotConfigured
    /// A wrong one came after too many others from this address.
    case attemptRateExceeded(retryAfterSeconds: Int)
    /// The token was good, and has been given too many reports of late.
    case reportRateExceeded(retryAfterSeconds: Int)
    /// Who asks has the first, and it takes the second.
    case insufficientRole(AdminRole, AdminRole)
    case crossSite
    /// Asked for by a name that anybody may give to this machine.
    case hostNotAllowed([UInt8])
}

extension AdminAccessError {
    /// What may be guessed at.
    package var isFailedAttempt: Bool { self == .tokenUnknown || self == .tokenMalformed }

    /// When it helps to ask again; nil if time alone does not.
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

    package var problem: ProblemDocument {
        switch self {
        case .tokenMissing:
            Self.problem(
                401, "admin-token", "A token is needed",
                "Wanted is Authorization: Bearer with a token of the operator's.")
        case .tokenMalformed:
            Self.problem(
                401, "admin-token", "The token is not one",
                "Authorization must come once, and hold Bearer, a space and a token.")
        case .tokenUnknown:
            Self.problem(
                401, "admin-token", "The token is not known",
                "It is none of the lines of the file that admin-token-file names; after a change "
                    + "of the file the node is told by SIGHUP.")
        case .tokensNotConfigured:
            Self.problem(
                401, "admin-token", "This node takes no token",
                "Its operator has set no admin-token-file; from this machine it can be asked "
                    + "without.")
        case .attemptRateExceeded(let seconds):
            Self.problem(
                429, "admin-attempts", "Too many wrong tokens",
                "The token is not known, and others from this address were not: answers to "
                    + "further ones come late for another \(seconds) s.")
        case .reportRateExceeded(let seconds):
            Self.problem(
                429, "admin-reports", "Too many reports",
                "A token that may not do everything is given only so many reports in a time; "
                    + "the next one in \(seconds) s.")
        case .insufficientRole(let has, let needed):
            Self.problem(
                403, "admin-role", "The token's role does not allow this",
                "It takes the role \(needed.rawValue), and the token has \(has.rawValue).")
        case .crossSite:
            Self.problem(
                403, "admin-cross-site", "A page of another site asks",
                "Sec-Fetch-Site, or Origin, says that this comes from somewhere else.")
        case .hostNotAllowed(let authority):
            Self.problem(
                421, "admin-host", "The node is not asked by this name",
                "Host is \(String(decoding: authority.prefix(256), as: UTF8.self)); without a "
                    + "token it must be an address or localhost.")
        }
    }

    private static func problem(
        _ status: UInt16, _ name: String, _ title: String, _ detail: String
    ) -> ProblemDocument {
        ProblemDocument(
            status: status, name: name, title: title, detail: detail + " Nothing was done.")
    }
}

/// What who asks the admin port may do; each role may do what those before it may.
package enum AdminRole: String, CaseIterable, Comparable, Sendable {
    /// See everything, and change nothing.
    case read
    /// Have entries forgotten, or fetched ahead.
    case purge
    /// Take nodes out of service, and change how they work.
    case admin

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    package static func < (one: AdminRole, other: AdminRole) -> Bool { one.rank < other.rank }
}
