package import Ground
package import HTTPRules

/// A caller of the admin port: its address, its credential and the fields that access depends on.
package struct AdminCaller: Hashable, Sendable {
    /// The proof of identity that came with a request.
    package enum Credential: Hashable, Sendable {
        case none
        /// The Authorization field is present, and holds no bearer token.
        case malformed
        case token(TokenDigest)
        /// A client certificate from an issuer that is trusted for operators.
        case certificate
    }

    /// The caller's IP address; `nil` if it has none.
    package var address: IPAddress?
    /// The proof of identity that the caller sent.
    package var credential: Credential
    /// The value of Host or of `:authority`; empty if there is none.
    package var authority: [UInt8]
    /// The value of the field Origin (RFC 6454 §7).
    package var origin: [UInt8]?
    /// The value of the field Sec-Fetch-Site (W3C Fetch Metadata).
    package var fetchSite: [UInt8]?

    /// Creates a caller from what its request says; `proof` is its ``credential``.
    package init(
        address: IPAddress?, proof: Credential, authority: [UInt8], origin: [UInt8]? = nil,
        fetchSite: [UInt8]? = nil
    ) {
        self.address = address
        self.credential = proof
        self.authority = authority
        self.origin = origin
        self.fetchSite = fetchSite
    }

    /// True if a page of another site made the browser send the request, according to
    /// Sec-Fetch-Site or else Origin; false without either.
    var isCrossSite: Bool {
        if let fetchSite {
            return !fetchSite.elementsEqual("same-origin".utf8)
                && !fetchSite.elementsEqual("none".utf8)
        }
        guard let origin else { return false }
        return !["http://", "https://"].contains { scheme in
            origin.count == scheme.utf8.count + authority.count
                && origin.starts(with: scheme.utf8)
                && origin.dropFirst(scheme.utf8.count).elementsEqual(authority)
        }
    }

    /// True if the authority is an IP address, `localhost` or a name below it, so not a name of the
    /// public DNS.
    ///
    /// With DNS rebinding, the name of another site resolves to this machine, and the site's page
    /// sends requests with that name.
    var hasAddressAuthority: Bool {
        var name = authority[...]
        if name.first == UInt8(ascii: "[") {
            guard let end = name.firstIndex(of: UInt8(ascii: "]")) else { return false }
            name = name[name.index(after: name.startIndex)..<end]
        } else if let colon = name.lastIndex(of: UInt8(ascii: ":")) {
            name = name[..<colon]
        }
        let text = String(decoding: name, as: UTF8.self).lowercased()
        return text == "localhost" || text.hasSuffix(".localhost") || IPAddress(text) != nil
    }
}
