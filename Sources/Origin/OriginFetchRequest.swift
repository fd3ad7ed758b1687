package import Ground
import HTTPRules
package import Wire

/// What is asked of an origin: a GET for one canonical URL, already written as bytes.
///
/// Nothing of the client's is in it but what ``Negotiation`` keeps of Accept and Accept-Encoding.
package struct OriginFetchRequest: Hashable, Sendable {
    /// The URL's scheme is `https`.
    package let isSecure: Bool
    package let origin: OriginAuthority
    /// The canonical key that is asked for.
    package let key: [UInt8]
    /// The request's head, up to and with the empty line.
    package let bytes: [UInt8]
    private let negotiation: Negotiation
    private let ifNoneMatch: [UInt8]
    private let ifModifiedSince: [UInt8]

    /// The value of User-Agent.
    package static let userAgent = "nuthatch/0.1"

    /// Writes the request for `key`.
    ///
    /// - Parameters:
    ///   - key: a canonical key, as ``CacheKey`` makes it.
    ///   - negotiation: what the client reads; becomes Accept and Accept-Encoding.
    ///   - ifNoneMatch: the entity tag of a stored answer, with its quotes; empty for none (RFC
    ///     9110 §13.1.2).
    ///   - ifModifiedSince: Last-Modified of a stored answer, as a date in the form of RFC 9110
    ///     §5.6.7; empty for none.
    /// - Throws: `invalidTarget` if `key` is no canonical key, `invalidValue` for a validator that
    ///   no field may hold.
    package init(
        key: Span<UInt8>, negotiation: Negotiation, ifNoneMatch: [UInt8] = [],
        ifModifiedSince: [UInt8] = []
    ) throws(OriginRequestError) {
        guard let url = OriginURL(canonical: key, at: 0..<key.count) else { throw .invalidTarget }
        self.key = key.copy(0..<key.count)
        self.negotiation = negotiation
        self.ifNoneMatch = ifNoneMatch
        self.ifModifiedSince = ifModifiedSince
        isSecure = url.isSecure
        origin = OriginAuthority(key, url)
        let target = key.copy(url.target.range)
        let authority = key.copy(url.authority.range)
        var request = try OriginRequest(method: .get, target: target.span, host: authority.span)
        try request.add(.userAgent, text: Self.userAgent)
        var accept: [UInt8] = []
        NegotiationRules.appendAccept(negotiation, to: &accept)
        try request.add(.accept, accept.span)
        var codings: [UInt8] = []
        NegotiationRules.appendAcceptEncoding(negotiation, to: &codings)
        try request.add(.acceptEncoding, codings.span)
        if !ifNoneMatch.isEmpty { try request.add(.ifNoneMatch, ifNoneMatch.span) }
        if !ifModifiedSince.isEmpty { try request.add(.ifModifiedSince, ifModifiedSince.span) }
        bytes = request.finish()
    }

    /// The same question about another URL, which is where a redirect leads.
    ///
    /// The validators stay: they are of the stored answer, whichever URL gave it.
    func redirected(to key: [UInt8]) throws(OriginRequestError) -> OriginFetchRequest {
        try OriginFetchRequest(
            key: key.span, negotiation: negotiation, ifNoneMatch: ifNoneMatch,
            ifModifiedSince: ifModifiedSince)
    }
}
