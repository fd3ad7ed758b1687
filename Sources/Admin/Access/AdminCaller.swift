package import Ground
package import HTTPRules

/// Who asks the admin port, as far as that is known before anything is done.
package struct AdminCaller: Hashable, Sendable {
    /// What came as proof.
    package enum Credential: Hashable, Sendable {
        case none
        /// Authorization is there, and holds no bearer token.
        case malformed
        case token(TokenDigest)
        /// A certificate of an issuer that operators are known by.
        case certificate
    }

    package var address: IPAddress?
    package var credential: Credential
    /// Host, or what stands for it; empty if there is none.
    package var authority: [UInt8]
    /// The field Origin (RFC 6454 §7).
    package var origin: [UInt8]?
    /// The field Sec-Fetch-Site (W3C Fetch Metadata).
    package var fetchSite: [UInt8]?

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

    /// A page of another site has a browser ask.
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

    /// The name asked for is an address, or `localhost`: nobody else can have made it lead here.
    ///
    /// A page whose own name was made to lead to this machine (DNS rebinding) asks by that name.
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
