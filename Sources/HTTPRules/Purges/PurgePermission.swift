package import Ground

/// The clients that may use PURGE on the ports that serve clients.
package struct PurgePermission: Hashable, Sendable {
    /// The networks whose clients may purge without a token.
    package var networks: [Network]
    /// The tokens with which clients may purge from any address.
    package var tokens: [TokenDigest]

    /// Creates a permission from its parts; without any, no client may purge.
    package init(networks: [Network] = [], tokens: [TokenDigest] = []) {
        self.networks = networks
        self.tokens = tokens
    }

    /// The result of checking a client.
    package enum Decision: Hashable, Sendable {
        case allowed
        /// No client may purge.
        case notConfigured
        /// This client may not purge, but others may.
        case refused(Refusal)
    }

    /// The credentials that a refused client lacked, and those that are accepted.
    package struct Refusal: Hashable, Sendable {
        /// The client's address; `nil` if it is not known.
        package var client: IPAddress?
        /// True if the client sent a token.
        package var hadToken: Bool
        /// True if clients of some networks may purge.
        package var allowsNetworks: Bool
        /// True if clients with a token may purge.
        package var allowsTokens: Bool

        /// True if a token would help and the client sent none.
        package var needsToken: Bool { allowsTokens && !hadToken }
    }

    /// Decides whether a client may purge.
    ///
    /// - Parameters:
    ///   - address: the address of the connection or, behind a trusted proxy, the one that the
    ///     proxy reports; never one from an untrusted field. `nil` if unknown.
    ///   - token: the digest of the token that the client sent; `nil` if it sent none.
    /// - Returns: `.allowed` if the address or the token is among those permitted; otherwise the
    ///   reason for the refusal.
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
    /// The message for the client: its address and the accepted credentials, without the allowed
    /// networks themselves.
    package var message: String {
        let who = client.map { "This request came from \($0.unmapped)" } ?? "This request came"
        let token = hadToken ? "with an unknown token" : "without a bearer token"
        let allowed =
            switch (allowsNetworks, allowsTokens) {
            case (true, true):
                "an address in one of the operator's networks, or Authorization: Bearer with one "
                    + "of the operator's tokens"
            case (true, false): "an address in one of the operator's networks"
            default: "Authorization: Bearer with one of the operator's tokens"
            }
        return "\(who) \(token). Required: \(allowed). Nothing was purged."
    }
}
