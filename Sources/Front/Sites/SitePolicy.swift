import Ground
import HTTPRules
import NodeConfiguration
import Origin
import Serving
import Store
import Wire

/// The policy of a site, derived once from its settings: the rules by which its requests are
/// served, forwarded and stored.
///
/// Images requested by their URLs are a built-in site whose requests name their origin.
final class SitePolicy: Sendable {
    /// Index of the site in the node's site table; -1 for images.
    let number: Int
    /// The configured site; `nil` for images.
    private let site: Site?
    /// Name in metrics and logs.
    let name: String
    /// The site's settings.
    let settings: SiteSettings
    /// The origin; `nil` if each request names it.
    let origin: OriginAuthority?
    /// Rules that responses must satisfy as images; `nil` for other sites.
    let imageRules: ImageRules?
    /// Fields forwarded for each reduction of an image request; empty for a site.
    let reducedRequests: [(fields: [FieldSetting], lines: RequestFields)]
    /// Digest of everything that affects forwarding and storage; policies with equal digests behave
    /// alike.
    let digest: UInt64
    /// Rules for storage.
    let storagePolicy: StoragePolicy
    /// Rules for reuse.
    let reusePolicy: ReusePolicy
    /// Rules for forwarded request fields.
    let requestFieldRules: RequestFieldRules
    /// Rules for responses that are stored and shared.
    let responseFieldRules: ResponseFieldRules
    /// Rules for all other responses.
    private let unsharedFieldRules: ResponseFieldRules
    /// Maximum size of a stored body, in bytes.
    let objectBytesMax: UInt64
    /// True if requests must be signed.
    let isSigned: Bool
    /// Default window of stale-while-revalidate (RFC 5861 §3), in seconds.
    private let staleWhileRevalidateSeconds: UInt32
    /// Response fields that list cache tags.
    let tagFields: [TagField]
    /// Rule that derives the URLs of originals from a key; `nil` if none is configured.
    let originals: SiteOriginals?
    /// Rule that rewrites the origin's references to itself; `nil` if clients see them unchanged.
    private let originReferences: OriginReferences?
    /// Filter for ignored query parameters; `nil` if all are significant.
    private let queryFilter: QueryFilter?

    /// Creates the policy of a configured site.
    ///
    /// - Parameters:
    ///   - number: number of the site in the table.
    ///   - site: the configured site.
    ///   - objectBytesMax: the node's own limit of a stored body, in bytes.
    ///   - trust: the site's own trust store; `nil` for the node's.
    convenience init(
        _ number: Int, _ site: Site, objectBytesMax: UInt64, trust: OriginTrustStore? = nil
    ) {
        self.init(
            number, site, site.settings, images: nil,
            origin: OriginAuthority(
                host: site.origin.host, port: site.origin.port, isSecure: site.origin.isSecure,
                trustStore: trust),
            StoragePolicy(site.settings), ReusePolicy(site.settings), RequestFieldRules(site),
            objectBytesMax: objectBytesMax)
    }

    /// Creates the policy of images of all origins, or of those that `given` is configured for.
    convenience init(_ rules: ImageRules, _ given: ImageSettings, objectBytesMax: UInt64) {
        var storing = StoragePolicy.image(
            defaultTTL: given.settings.defaultTTL ?? rules.defaultTTL, types: rules.types)
        storing.freshness.ttlMax = given.settings.ttlMax
        var reuse = ReusePolicy(given.settings)
        // Without an explicit grace, an entry that may be purged must not be served while the node
        // is fenced.
        if !given.hasExplicitGrace { reuse.fencedGrace = .zero }
        self.init(
            -1, nil, given.settings, images: rules, origin: nil, storing, reuse,
            RequestFieldRules(given.settings), objectBytesMax: objectBytesMax)
    }

    /// Creates a policy from its rules.
    private init(
        _ number: Int, _ site: Site?, _ settings: SiteSettings, images: ImageRules?,
        origin: OriginAuthority?, _ storing: StoragePolicy, _ reuse: ReusePolicy,
        _ requestRules: RequestFieldRules, objectBytesMax: UInt64
    ) {
        self.number = number
        self.site = site
        name = site?.name ?? "images"
        self.settings = settings
        self.imageRules = images
        self.origin = origin
        digest = Self.digest(of: site, settings)
        self.storagePolicy = storing
        self.reusePolicy = reuse
        self.requestFieldRules = requestRules
        reducedRequests = images == nil ? [] : Self.reductions(by: requestRules)
        responseFieldRules = ResponseFieldRules(settings)
        unsharedFieldRules = responseFieldRules.withoutClientCacheControl
        isSigned = settings.requiresSignature
        staleWhileRevalidateSeconds = UInt32(clamping: settings.staleWhileRevalidate.seconds)
        tagFields = settings.tagFields.names.compactMap {
            TagField(String(decoding: $0, as: UTF8.self))
        }
        originals = site.flatMap(SiteOriginals.init)
        originReferences = site.flatMap {
            OriginReferences($0.origin, host: $0.settings.originHostRule)
        }
        queryFilter =
            settings.ignoredQuery.isEmpty ? nil : QueryFilter(ignoring: settings.ignoredQuery)
        self.objectBytesMax = min(objectBytesMax, settings.objectBytesMax ?? .max)
    }

    /// Returns the policy digest, equal on all nodes of one version; 0 for images with default
    /// settings.
    private static func digest(of site: Site?, _ settings: SiteSettings) -> UInt64 {
        if site == nil, settings == .images { return 0 }
        let whose = site.map { "\($0.name) \($0.origin)" } ?? "images"
        return XXH64.hash(Array("\(whose) \(settings)".utf8).span, seed: 0)
    }

    // MARK: Requests

    /// Replaces `key` by the key of a request; returns false if it has none (`*` of OPTIONS).
    ///
    /// - Parameters:
    ///   - bytes: the buffer that contains host, path and query.
    ///   - host: the range of the host in `bytes`.
    ///   - path: the range of path and query in `bytes`.
    ///   - isSecure: true if the request came by TLS.
    ///   - key: receives the key.
    /// - Returns: true if `key` contains the key of the request; false for images and for a request
    ///   without one.
    func makeKey(
        _ bytes: Span<UInt8>, host: Range<Int>, path: Range<Int>, isSecure: Bool,
        _ key: inout [UInt8]
    ) -> Bool {
        key.removeAll(keepingCapacity: true)
        guard let site else { return false }
        guard let queryFilter else {
            return SiteKey.append(
                site, host: host, in: bytes, path: path, of: bytes, isSecure: isSecure, to: &key)
        }
        var target: [UInt8] = []
        guard queryFilter.filter(bytes, at: path, into: &target) else {
            return SiteKey.append(
                site, host: host, in: bytes, path: path, of: bytes, isSecure: isSecure, to: &key)
        }
        return SiteKey.append(
            site, host: host, in: bytes, path: 0..<target.count, of: target.span,
            isSecure: isSecure, to: &key)
    }

    /// Returns the requested host as forwarded to the origin: the normalised form that the key
    /// contains.
    func forwardedHost(_ bytes: Span<UInt8>, at host: Range<Int>, isSecure: Bool) -> [UInt8] {
        guard isForEveryHost else { return Array(name.utf8) }
        var authority: [UInt8] = []
        SiteKey.append(authority: host, in: bytes, isSecure: isSecure, to: &authority)
        return authority
    }

    /// True for the site `*`, which serves hosts without a named site.
    var isForEveryHost: Bool { site?.pattern == .catchAll }

    /// Appends the text that the signature of a URL covers, without its expiry; returns false if
    /// the request has no key.
    func appendSignedText(
        _ bytes: Span<UInt8>, host: Range<Int>, path: Range<Int>, to text: inout [UInt8]
    ) -> Bool {
        guard let site else { return false }
        return SiteKey.append(site, host: host, in: bytes, path: path, of: bytes, to: &text)
    }

    /// Returns true if this policy replaces `other` after a change of settings.
    func isSuccessor(of other: SitePolicy) -> Bool { site?.pattern == other.site?.pattern }

    /// Returns the target for the origin: path and query without ignored parameters.
    func forwardedTarget(_ bytes: Span<UInt8>, path: Range<Int>) -> [UInt8] {
        var target: [UInt8] = []
        if queryFilter?.filter(bytes, at: path, into: &target) != true { target = bytes.copy(path) }
        // The part behind the authority of an absolute target may be empty or begin with the query.
        if target.first != UInt8(ascii: "/"), target != [UInt8(ascii: "*")] {
            target.insert(UInt8(ascii: "/"), at: 0)
        }
        return target
    }

    /// Returns the fields forwarded to the origin, to which its Vary refers.
    func forwarded(_ asked: ForwardedRequest, _ lines: RequestFields) -> RequestFields {
        let bytes = lines.bytes
        let told = RequestForwarder.forwardedFields(
            asked, lines.lines, in: bytes.span, rules: requestFieldRules)
        return RequestFields(bytes: told.bytes, lines: told.lines)
    }

    // MARK: Responses

    /// Evaluates a response to `query` by the caching rules.
    ///
    /// - Parameters:
    ///   - head: the head of the response.
    ///   - query: the request.
    ///   - receipt: when the response was requested and received.
    ///   - asGet: true to evaluate a response to HEAD as one to GET.
    /// - Returns: the freshness of the response, and why it must not be stored, if so.
    func evaluate(
        _ head: ResponseHead, _ query: SiteRequest, _ receipt: Freshness.ResponseTiming,
        asGet: Bool = false
    ) -> Cacheability {
        var examination = CacheabilityRules.evaluate(
            head,
            to: RequestCacheability(
                method: asGet || query.isGet ? .get : query.isHead ? .head : .other,
                hasAuthorization: query.hasAuthorization, hasCookie: query.hasCookie,
                isNoStore: query.cacheControl.isNoStore),
            timing: receipt, policy: storagePolicy)
        if examination.notStoredReason == nil, let types = settings.types, !types.accepts(head) {
            examination.notStoredReason = .contentType
        }
        return examination
    }

    /// Returns the field rules for a response, by whether it is shared.
    private func rules(of examination: Cacheability) -> ResponseFieldRules {
        examination.isCollapsible ? responseFieldRules : unsharedFieldRules
    }

    /// Returns the head with which a response is stored, or sent to waiting requests.
    ///
    /// - Parameters:
    ///   - head: the head of the origin's response.
    ///   - size: size of the body in bytes; `nil` while unknown, and ignored for 204.
    ///   - examination: the result of the caching rules for the response.
    ///   - received: the time at which the head was received; not used for images.
    /// - Returns: the head, rendered for clients by the field rules of the site.
    func storedHead(
        _ head: ResponseHead, size: UInt64?, _ examination: Cacheability, received: WallTime
    ) -> StoredHead {
        render(head, size: size, rules(of: examination), examination.unstoredFields, received)
    }

    /// Renders a head; that of an image has no Date, which each response adds.
    private func render(
        _ head: ResponseHead, size: UInt64?, _ rules: ResponseFieldRules, _ dropped: FieldNames,
        _ received: WallTime
    ) -> StoredHead {
        StoredHead(
            clientView(head), size: head.status == 204 ? nil : size, rules: rules,
            unstored: dropped,
            received: imageRules == nil ? received : nil)
    }

    /// Returns the origin's head as clients may see it, before the operator's field rules apply.
    private func clientView(_ head: ResponseHead) -> ResponseHead {
        imageRules == nil ? head : head.imageResponse
    }

    /// Returns the head of a response that is not stored, without the fields `dropped` and with Via
    /// (RFC 9110 §7.6.3).
    func unstoredHead(
        _ head: ResponseHead, size: UInt64?, without dropped: FieldNames, received: WallTime
    ) -> StoredHead {
        let stored = render(head, size: size, unsharedFieldRules, dropped, received)
        guard unsharedFieldRules.addsVia else { return stored }
        var bytes = stored.bytes
        Via.append(version: StatusLine.version(head), to: &bytes)
        return StoredHead(
            rendered: bytes, partialStart: stored.partialStart,
            multipartStart: stored.multipartStart, notModifiedStart: stored.notModifiedStart,
            contentType: stored.contentType, entityTag: stored.entityTag)
    }

    /// Returns the metadata of a response received with `head` and stored with `stored`.
    func metadata(
        _ examination: Cacheability, size: UInt64, _ stored: StoredHead, of head: ResponseHead
    ) -> EntryMetadata {
        var facts = examination.metadata(size: size, head: stored)
        let shown = clientView(head)
        facts.flags.formUnion(rules(of: examination).flags(for: shown))
        // The origin's own window takes precedence, even if it is zero.
        if EffectiveCacheControl(shown).control.staleWhileRevalidate == nil {
            facts.staleWhileRevalidateSeconds = staleWhileRevalidateSeconds
        }
        if imageRules == nil { facts.flags.insert(.isDated) }
        return facts
    }

    /// Returns a response with references to its origin rewritten for clients, whether or not it is
    /// stored.
    func forwarded(_ head: ResponseHead, to query: SiteRequest) -> ResponseHead {
        guard settings.rewritesLocation, let originReferences else { return head }
        return head.rewritingReferences(originReferences, isSecure: query.forwardedRequest.isSecure)
    }

    /// Returns the head of a response that bypasses the cache.
    func passThroughHead(
        _ head: ResponseHead, takesTrailers: Bool, received: WallTime
    ) -> StoredHead {
        var bytes: [UInt8] = []
        ResponseForwarder.append(
            head, rules: responseFieldRules, forwardsTrailers: takesTrailers, receivedAt: received,
            to: &bytes)
        let start = (bytes.firstIndex(of: 0x0A) ?? -1) + 1
        return StoredHead(
            rendered: bytes, partialStart: start, multipartStart: start, notModifiedStart: start,
            contentType: .empty, entityTag: .empty)
    }

    /// Returns the tags by which purges find the response.
    ///
    /// - Parameters:
    ///   - head: the head of the origin's response, whose fields list cache tags.
    ///   - key: the key of the request.
    ///   - originals: the rule that derives the URLs of originals; `nil` for none.
    ///   - redirectedURLs: the URL from which the response came after redirects, used for images
    ///     only; empty without redirects.
    /// - Returns: the tags, with the number of cache tags that were dropped.
    func tags(
        of head: ResponseHead, key: [UInt8], _ originals: SiteOriginals?, redirectedURLs: [[UInt8]]
    ) -> EntryTags {
        EntryTags(
            key: key, cacheTags: CacheTags(head, fields: tagFields),
            urls: imageRules == nil ? urls(of: key, originals) : redirectedURLs)
    }

    /// Returns the tags of a validated response; the rule for originals may have changed since it
    /// was stored.
    ///
    /// - Parameters:
    ///   - stored: the tags of the stored response.
    ///   - key: the key of the response.
    ///   - originals: the rule that derives the URLs of originals at present; `nil` for none.
    /// - Returns: for images `stored`; otherwise tags for the URLs by the present rule, followed by
    ///   the stored cache tags, at most `EntryTags.countMax` in total.
    func tags(stored: [[UInt8]], key: [UInt8], _ originals: SiteOriginals?) -> [[UInt8]] {
        guard imageRules == nil else { return stored }
        let said = stored.filter { URLName.name(inTag: $0) == nil }
        let names = EntryTags(key: key, urls: urls(of: key, originals)).tags
        return names + said.prefix(EntryTags.countMax - names.count)
    }

    /// Returns the URLs by which a purge also finds the entry under `key`.
    private func urls(of key: [UInt8], _ originals: SiteOriginals?) -> [[UInt8]] {
        (isForEveryHost ? originURL(of: key) : [])
            + (originals?.urls(ofKey: key) ?? [])
    }

    /// Returns the URL requested from the origin for the entry under `key`; empty if it has no
    /// canonical form.
    private func originURL(of key: [UInt8]) -> [[UInt8]] {
        let target = URLName.name(ofKey: key).drop { $0 != UInt8(ascii: "/") }
        let url = Array((site?.origin.description ?? "").utf8) + target
        var canonical: [UInt8] = []
        let result = CacheKey.normalise(url: url.span, at: 0..<url.count, into: &canonical)
        return result == .normalised ? [canonical] : []
    }

    /// Returns the keys that a request with an unsafe method invalidates, according to its response
    /// `head` (RFC 9111 §4.4); empty if it invalidates none.
    func invalidatedKeys(by head: ResponseHead, _ query: SiteRequest) -> [[UInt8]] {
        let method = query.forwardedRequest.method
        guard
            UnsafeMethodInvalidation.isRequired(
                MethodProperties(method.span, at: 0..<method.count), status: head.status)
        else { return [] }
        let host = query.forwardedRequest.host
        // An origin may refer to itself by its own name or by the one that clients use.
        let targets = UnsafeMethodInvalidation.expanded(
            isSecure: query.forwardedRequest.isSecure, authority: host,
            target: query.forwardedRequest.target,
            response: originReferences.map {
                head.rewritingReferences($0, isSecure: query.forwardedRequest.isSecure)
            } ?? head)
        // The origin's resource is the same for http and https.
        return targets.flatMap { target in
            [false, true].compactMap { isSecure in
                var key: [UInt8] = []
                let bytes = host + target
                let isMade = makeKey(
                    bytes.span, host: 0..<host.count, path: host.count..<bytes.count,
                    isSecure: isSecure, &key)
                return isMade ? key : nil
            }
        }
    }
}
