package import Ground
package import HTTPRules
package import Wire

/// What is asked of an origin, already written as bytes: a GET for one canonical URL, or anything
/// for a site.
///
/// In the first nothing of the client's is but what ``NegotiationNormaliser`` leave of Accept and
/// Accept-Encoding, and what its request is called.
package struct OriginFetchRequest: Hashable, Sendable {
    package let origin: OriginAuthority
    /// The canonical key that is asked for; empty in a site's request, after which no redirect is
    /// followed.
    package let key: [UInt8]
    /// The request's head, up to and with the empty line.
    package let bytes: [UInt8]
    /// How the body that follows is framed; it is given to the ``OriginFetch``.
    package let body: RequestBodyFraming
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
    package var quotaHolders: [QuotaHolder] = []
    /// The protocols that its head asks the origin to switch to, as Upgrade lists them; empty for
    /// none.
    ///
    /// After a 101 what is given as the request's body goes to the origin as it is, and what comes
    /// is told as the answer's, until either side ends. It is asked over HTTP/1.1.
    package var upgrade: [UInt8] = []
    /// The lines that go with it to every origin that a redirect leads to.
    private let fields: [FieldSetting]
    /// Those that go to the origin of ``key`` alone.
    private let originOnlyFields: [FieldSetting]

    /// It says User-Agent.
    private let sendsUserAgent: Bool

    /// The value of User-Agent.
    package static let userAgent = "nuthatch/0.1"

    /// Writes the request for `key`; nil if that is no canonical key, as ``CacheKey`` makes it.
    ///
    /// - Parameters:
    ///   - key: what is asked for.
    ///   - fields: the lines behind Host, each of another name; also for the origins that redirects
    ///     lead to.
    ///   - originOnlyFields: further lines, which another origin is not told.
    ///   - sendsUserAgent: it says User-Agent, unless a line does.
    package init?(
        key: [UInt8], fields: [FieldSetting], originOnlyFields: [FieldSetting] = [],
        sendsUserAgent: Bool = true
    ) {
        let span = key.span
        guard CacheKey.isKey(key, bytesMax: key.count),
            let url = OriginURL(canonical: span, at: key.indices)
        else { return nil }
        self.key = key
        body = .none
        isHead = false
        isSafeToRetry = true
        self.fields = fields
        self.originOnlyFields = originOnlyFields
        self.sendsUserAgent = sendsUserAgent
        origin = OriginAuthority(span, url)
        bytes = RequestForwarder.get(
            target: span.copy(url.target.range), host: span.copy(url.authority.range),
            userAgent: sendsUserAgent ? Self.userAgent : nil, fields + originOnlyFields)
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
        body: RequestBodyFraming = .none, isSafeToRetry: Bool
    ) {
        precondition(method != .connect)
        precondition(
            head.suffix(2).elementsEqual("\r\n".utf8)
                && !head.suffix(4).elementsEqual("\r\n\r\n".utf8),
            "the head of a request ends behind its last line, before the empty one")
        self.origin = origin.operatorConfigured
        self.body = body
        self.isSafeToRetry = isSafeToRetry
        isHead = method == .head
        key = []
        fields = []
        originOnlyFields = []
        sendsUserAgent = false
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

    /// The same question about another URL, which is where a redirect leads; nil if that is no key.
    ///
    /// The validators stay: they are of the stored answer, whichever URL gave it.
    func redirected(to key: [UInt8]) -> OriginFetchRequest? {
        let isSameOrigin = OriginAuthority(ofKey: key.span) == origin
        var request = OriginFetchRequest(
            key: key, fields: fields, originOnlyFields: isSameOrigin ? originOnlyFields : [],
            sendsUserAgent: sendsUserAgent || !isSameOrigin)
        request?.quotaHolders = quotaHolders
        return request
    }
}
