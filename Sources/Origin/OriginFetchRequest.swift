package import Ground
package import HTTPRules
package import Wire

/// What is asked of an origin, already written as bytes: a GET for one canonical URL, or anything
/// for a site.
///
/// In the first nothing of the client's is but what ``Negotiation`` keeps of Accept and
/// Accept-Encoding, and what its request is called.
package struct OriginFetchRequest: Hashable, Sendable {
    package let origin: OriginAuthority
    /// The canonical key that is asked for; empty in a site's request, after which no redirect is
    /// followed.
    package let key: [UInt8]
    /// The request's head, up to and with the empty line.
    package let bytes: [UInt8]
    /// How the body that follows is framed; it is given to the ``OriginFetch``.
    package let body: RequestBody
    /// The answer has no body, whatever its fields say (RFC 9110 §9.3.2).
    package let isHead: Bool
    /// True if asking twice does no harm, so that a connection that turns out closed may be
    /// replaced (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
    package let isSafeToRetry: Bool
    /// Greatest size in bytes of the answer's body; nil for that of ``OriginSettings``.
    package var bodyBytesMax: UInt64?
    /// From the start of the fetch to its end; nil for that of ``OriginSettings``.
    package var totalLimit: Interval?
    /// Of whose share its connection is.
    package var holders: [ShareHolder] = []
    /// The protocols that its head asks the origin to switch to, as Upgrade lists them; empty for
    /// none.
    ///
    /// After a 101 what is given as the request's body goes to the origin as it is, and what comes
    /// is told as the answer's, until either side ends. It is asked over HTTP/1.1.
    package var upgrade: [UInt8] = []
    private let negotiation: Negotiation
    private let ifNoneMatch: [UInt8]
    private let ifModifiedSince: [UInt8]
    private let causeLines: [FieldSetting]

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
    ///   - causeLines: those of the ``RequestCause``; of other names than the ones named here.
    /// - Throws: `invalidTarget` if `key` is no canonical key, `invalidValue` for a validator that
    ///   no field may hold.
    package init(
        key: Span<UInt8>, negotiation: Negotiation, ifNoneMatch: [UInt8] = [],
        ifModifiedSince: [UInt8] = [], causeLines: [FieldSetting] = []
    ) throws(OriginRequestError) {
        guard let url = OriginURL(canonical: key, at: 0..<key.count) else { throw .invalidTarget }
        self.key = key.copy(0..<key.count)
        body = .none
        isHead = false
        isSafeToRetry = true
        self.negotiation = negotiation
        self.ifNoneMatch = ifNoneMatch
        self.ifModifiedSince = ifModifiedSince
        self.causeLines = causeLines
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
        for line in causeLines { try request.add(name: line.name.span, line.value.span) }
        bytes = request.finish()
    }

    /// A request for a site, whose origin the operator names; every answer to it is handed on.
    ///
    /// - Parameters:
    ///   - origin: whom to ask; taken as ``OriginAuthority/isNamedByOperator``.
    ///   - method: what the request line says; `other` for what has no case. CONNECT is a
    ///     programmer's error.
    ///   - head: the request line and every field line, each with its CR LF, without Content-Length
    ///     and Transfer-Encoding, which follow from `body`, and without the empty line.
    ///   - body: how the body is framed.
    ///   - isSafeToRetry: asking twice does no harm; never so once a byte of the body was sent.
    package init(
        origin: OriginAuthority, method: RequestMethod, head: [UInt8],
        body: RequestBody = .none, isSafeToRetry: Bool
    ) {
        precondition(method != .connect)
        precondition(
            head.suffix(2).elementsEqual("\r\n".utf8)
                && !head.suffix(4).elementsEqual("\r\n\r\n".utf8),
            "the head of a request ends behind its last line, before the empty one")
        self.origin = origin.namedByOperator
        self.body = body
        self.isSafeToRetry = isSafeToRetry
        isHead = method == .head
        key = []
        negotiation = []
        ifNoneMatch = []
        ifModifiedSince = []
        causeLines = []
        var bytes = head
        body.appendField(to: &bytes)
        bytes += Array("\r\n".utf8)
        self.bytes = bytes
    }

    /// A hash of the path that the request line names, without its query.
    var pathHash: UInt64 {
        let target = bytes.split(separator: 0x20, maxSplits: 2).dropFirst().first ?? []
        let path = Array(target.prefix { $0 != 0x3F })
        return XXH64.hash(path.span, seed: 0)
    }

    /// The same question about another URL, which is where a redirect leads.
    ///
    /// The validators stay: they are of the stored answer, whichever URL gave it.
    func redirected(to key: [UInt8]) throws(OriginRequestError) -> OriginFetchRequest {
        var request = try OriginFetchRequest(
            key: key.span, negotiation: negotiation, ifNoneMatch: ifNoneMatch,
            ifModifiedSince: ifModifiedSince, causeLines: causeLines)
        request.holders = holders
        return request
    }
}
