package import Ground

/// Who may use PURGE where clients are served.
package struct PurgePermission: Hashable, Sendable {
    /// Any of these addresses, without a token.
    package var networks: [Network]
    /// Any of these tokens, from any address.
    package var tokens: [TokenDigest]

    package init(networks: [Network] = [], tokens: [TokenDigest] = []) {
        self.networks = networks
        self.tokens = tokens
    }

    package enum Decision: Hashable, Sendable {
        case allowed
        /// Nobody may.
        case notConfigured
        /// Others may.
        case refused(Refusal)
    }

    /// What was missing, and what would have been enough.
    package struct Refusal: Hashable, Sendable {
        /// Who asked; nil if that is not known.
        package var client: IPAddress?
        package var hadToken: Bool
        package var allowsNetworks: Bool
        package var allowsTokens: Bool

        /// Whoever asked may be one who has a token, and did not send it.
        package var needsToken: Bool { allowsTokens && !hadToken }
    }

    /// Whether the client at `address` may purge, who sent the token that has this digest.
    ///
    /// The address is that of the connection or, behind a trusted proxy, the one that the proxy
    /// names; never one that a field says.
    package func decision(on address: IPAddress?, token: TokenDigest?) -> Decision {
        guard !networks.isEmpty || !tokens.isEmpty else { return .notConfigured }
        if let address, networks.contains(where: { $0.contains(address) }) { return .allowed }
        if let token, token.isAmong(tokens) { return .allowed }
        return .refused(
            Refusal(
                client: address, hadToken: token != nil, allowsNetworks: !networks.isEmpty,
                allowsTokens: !tokens.isEmpty))
    }
}

extension PurgePermission.Refusal {
    /// Who asked, and who may; the allowed networks themselves are nobody else's business.
    package var message: String {
        let who = client.map { "This request came from \($0.unmapped)" } ?? "This request came"
        let token = hadToken ? "with a token that is not known" : "without a bearer token"
        let allowed =
            switch (allowsNetworks, allowsTokens) {
            case (true, true):
                "an address in one of the operator's networks, or Authorization: Bearer with one "
                    + "of the operator's tokens"
            case (true, false): "an address in one of the operator's networks"
            default: "Authorization: Bearer with one of the operator's tokens"
            }
        return "\(who) \(token). Wanted is \(allowed). Nothing was purged."
    }
}
