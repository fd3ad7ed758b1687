package import Ground
package import HTTPRules
package import Wire

/// A request to an origin, already serialised: a GET for one canonical URL, or any request for a
/// site.
///
/// A GET for a canonical URL contains nothing from the client except what ``NegotiationNormaliser``
/// leaves of Accept and Accept-Encoding, and the request's id.
package struct OriginFetchRequest: Hashable, Sendable {
    /// The origin to connect to.
    package let origin: OriginAuthority
    /// The canonical key of the requested URL; empty in a site request, which follows no redirects.
    package let key: [UInt8]
    /// The request head, including the empty line.
    package let bytes: [UInt8]
    /// The framing of the body, which is sent through the ``OriginFetch``.
    package let body: RequestBodyFraming
    /// True for HEAD, whose response has no body, whatever its fields say (RFC 9110 §9.3.2).
    package let isHead: Bool
    /// True if the request may be sent twice, so that a connection that turns out to be closed may
    /// be replaced (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
    package let isSafeToRetry: Bool
    /// Maximum size of the response body in bytes; `nil` for that of ``OriginSettings``.
    package var bodyBytesMax: UInt64?
    /// Maximum time from the start of the fetch to its end; `nil` for that of ``OriginSettings``.
    package var totalLimit: Interval?
    /// The holders whose quotas the connection counts against.
    package var quotaHolders: [QuotaHolder] = []
    /// The protocols in the Upgrade field of the request head, as listed there; empty for none.
    ///
    /// After a 101, the request body carries the client's bytes unchanged and the response body the
    /// origin's, until either side ends. Such a request is sent over HTTP/1.1.
    package var upgrade: [UInt8] = []
    /// Field lines that are sent to every origin, including those that redirects lead to.
    private let fields: [FieldSetting]
    /// Field lines that are sent to the origin of ``key`` only.
    private let originOnlyFields: [FieldSetting]

    /// True if this node's own User-Agent is sent, unless another line sets one.
    private let sendsUserAgent: Bool

    /// The value of User-Agent.
    package static let userAgent = "nuthatch/0.1"

    /// Creates the request for `key`; `nil` if it is not a canonical key, as ``CacheKey`` makes it.
    ///
    /// - Parameters:
    ///   - key: the URL to request.
    ///   - fields: the lines after Host, each with another name; also sent to origins that
    ///     redirects lead to.
    ///   - originOnlyFields: further lines, which are not sent to another origin.
    ///   - sendsUserAgent: true to send User-Agent, unless a line does.
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

    /// Creates a request for a site, whose origin the operator configures; every response to it is
    /// delivered, redirects included.
    ///
    /// - Parameters:
    ///   - origin: the origin; taken as ``OriginAuthority/isOperatorConfigured``.
    ///   - method: the method of the request line; `other` for one without a case. CONNECT is a
    ///     precondition failure.
    ///   - head: the request line and every field line, each with its CR LF, without Content-Length
    ///     and Transfer-Encoding, which follow from `body`, and without the empty line.
    ///   - body: the framing of the body.
    ///   - isSafeToRetry: true if the request may be sent twice, as long as no byte of the body has
    ///     been sent.
    package init(
        origin: OriginAuthority, method: RequestMethod, head: [UInt8],
        body: RequestBodyFraming = .none, isSafeToRetry: Bool
    ) {
        precondition(method != .connect)
        precondition(
            head.suffix(2).elementsEqual("\r\n".utf8)
                && !head.suffix(4).elementsEqual("\r\n\r\n".utf8),
            "the head of a request ends after its last line, before the empty one")
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

    /// A hash of the path in the request line, without its query.
    var pathHash: UInt64 {
        let target = bytes.split(separator: 0x20, maxSplits: 2).dropFirst().first ?? []
        let path = Array(target.prefix { $0 != 0x3F })
        return XXH64.hash(path.span, seed: 0)
    }

    /// Returns the request for the target of a redirect, without the origin-only fields if its
    /// origin is another one; `nil` if `key` is not a canonical key.
    ///
    /// The validators stay: they belong to the stored response, whichever URL it came from.
    /// ``bodyBytesMax`` and ``totalLimit`` are not inherited.
    func redirected(to key: [UInt8]) -> OriginFetchRequest? {
        let isSameOrigin = OriginAuthority(ofKey: key.span) == origin
        var request = OriginFetchRequest(
            key: key, fields: fields, originOnlyFields: isSameOrigin ? originOnlyFields : [],
            sendsUserAgent: sendsUserAgent || !isSameOrigin)
        request?.quotaHolders = quotaHolders
        return request
    }
}
