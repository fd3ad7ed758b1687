import Ground
import HTTPRules
import Origin
import Serving
import Store
import Wire

/// What a site's settings come to, made once when they are read: the rules by which its requests
/// are answered, forwarded and stored.
///
/// Images that are asked for by their URLs are a site that comes built in: each request names its
/// origin.
final class SitePolicy: Sendable {
    /// The number of the site in its table; of none for images.
    let number: Int
    /// What the operator has named; nil for images.
    private let site: Site?
    /// What it is called in metrics and logs.
    let name: String
    let settings: SiteSettings
    /// Nil if each request names it.
    let origin: OriginAuthority?
    /// What an answer has to be; nil for anything.
    let imageRules: ImageRules?
    /// What an image's origin is told of each request; empty for a site.
    let reducedRequests: [(fields: [FieldSetting], lines: RequestFields)]
    /// Of all that says how requests are forwarded and answers stored: equal ones do the same.
    let digest: UInt64
    let storagePolicy: StoragePolicy
    let reusePolicy: ReusePolicy
    let requestFieldRules: RequestFieldRules
    /// Of answers that are stored and that others may be given.
    let responseFieldRules: ResponseFieldRules
    /// Of all others.
    private let unsharedFieldRules: ResponseFieldRules
    /// The largest body that is kept, in bytes.
    let objectBytesMax: UInt64
    /// Only what is signed is answered.
    let isSigned: Bool
    /// For answers that name no such window (RFC 5861 §3).
    private let staleWhileRevalidateSeconds: UInt32
    /// In which answers name their tags.
    let tagFields: [TagField]
    /// What answers are made from; nil if nothing says it.
    let originals: SiteOriginals?
    /// How the origin refers to itself; nil if that is nothing to clients.
    private let originReferences: OriginReferences?
    /// Nil if every parameter counts.
    private let queryFilter: QueryFilter?

    /// `objectBytesMax` is the node's own limit; `trust` is the site's own, if it has one.
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

    /// The site of images, or of those from some origins.
    convenience init(_ rules: ImageRules, _ given: ImageSettings, objectBytesMax: UInt64) {
        var storing = StoragePolicy.image(
            defaultTTL: given.settings.defaultTTL ?? rules.defaultTTL, types: rules.types)
        storing.freshness.ttlMax = given.settings.ttlMax
        var reuse = ReusePolicy(given.settings)
        // What nobody has asked for gives nothing that may be purged.
        if !given.hasExplicitGrace { reuse.fencedGrace = .zero }
        self.init(
            -1, nil, given.settings, images: rules, origin: nil, storing, reuse,
            RequestFieldRules(given.settings), objectBytesMax: objectBytesMax)
    }

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

    /// Two nodes of one version give the same for the same settings; 0 for images of which nothing
    /// is said.
    private static func digest(of site: Site?, _ settings: SiteSettings) -> UInt64 {
        if site == nil, settings == .images { return 0 }
        let whose = site.map { "\($0.name) \($0.origin)" } ?? "images"
        return XXH64.hash(Array("\(whose) \(settings)".utf8).span, seed: 0)
    }

    // MARK: Requests

    /// Makes `key` the key of what is asked for: path and query lie in `path` of `bytes`; false if
    /// it has none (`*` of OPTIONS).
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

    /// The host that was asked for, as the origin is told: as it is in the key, whatever was sent.
    func forwardedHost(_ bytes: Span<UInt8>, at host: Range<Int>, isSecure: Bool) -> [UInt8] {
        guard isForEveryHost else { return Array(name.utf8) }
        var authority: [UInt8] = []
        SiteKey.append(authority: host, in: bytes, isSecure: isSecure, to: &authority)
        return authority
    }

    /// It answers for hosts that no other site is named for.
    var isForEveryHost: Bool { site?.pattern == .catchAll }

    /// Appends what a signature is for; false if there is no key.
    func appendSignedText(
        _ bytes: Span<UInt8>, host: Range<Int>, path: Range<Int>, to text: inout [UInt8]
    ) -> Bool {
        guard let site else { return false }
        return SiteKey.append(site, host: host, in: bytes, path: path, of: bytes, to: &text)
    }

    /// True if this is what `other` was before settings changed.
    func isSuccessor(of other: SitePolicy) -> Bool { site?.pattern == other.site?.pattern }

    /// The target that the origin is asked for: path and query without what the site ignores.
    func forwardedTarget(_ bytes: Span<UInt8>, path: Range<Int>) -> [UInt8] {
        var target: [UInt8] = []
        if queryFilter?.filter(bytes, at: path, into: &target) != true { target = bytes.copy(path) }
        // What follows the authority of an absolute target may be empty or begin with the query.
        if target.first != UInt8(ascii: "/"), target != [UInt8(ascii: "*")] {
            target.insert(UInt8(ascii: "/"), at: 0)
        }
        return target
    }

    /// The fields that the origin is told of, which is what its Vary speaks of.
    func forwarded(_ asked: ForwardedRequest, _ lines: RequestFields) -> RequestFields {
        let bytes = lines.bytes
        let told = RequestForwarder.forwardedFields(
            asked, lines.lines, in: bytes.span, rules: requestFieldRules)
        return RequestFields(bytes: told.bytes, lines: told.lines)
    }

    // MARK: Answers

    /// What is to be known of an answer to `query`.
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

    private func rules(of examination: Cacheability) -> ResponseFieldRules {
        examination.isCollapsible ? responseFieldRules : unsharedFieldRules
    }

    /// The head under which an answer is stored, or sent to those who wait for it.
    ///
    /// `size` is nil while it is not known; a 204 has none.
    func storedHead(
        _ head: ResponseHead, size: UInt64?, _ examination: Cacheability, received: WallTime
    ) -> StoredHead {
        render(head, size: size, rules(of: examination), examination.unstoredFields, received)
    }

    /// Of images Date is that of each answer.
    private func render(
        _ head: ResponseHead, size: UInt64?, _ rules: ResponseFieldRules, _ dropped: FieldNames,
        _ received: WallTime
    ) -> StoredHead {
        StoredHead(
            clientView(head), size: head.status == 204 ? nil : size, rules: rules,
            unstored: dropped,
            received: imageRules == nil ? received : nil)
    }

    /// What is shown of the origin's head, before the operator's settings are applied.
    private func clientView(_ head: ResponseHead) -> ResponseHead {
        imageRules == nil ? head : head.imageResponse
    }

    /// The head of an answer that is not stored, without the fields `dropped`, which says by whom
    /// it was passed on (RFC 9110 §7.6.3).
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

    /// The facts of an answer that came with `head` and is stored with `stored`.
    func metadata(
        _ examination: Cacheability, size: UInt64, _ stored: StoredHead, of head: ResponseHead
    ) -> EntryMetadata {
        var facts = examination.metadata(size: size, head: stored)
        let shown = clientView(head)
        facts.flags.formUnion(rules(of: examination).flags(for: shown))
        // What the origin says counts, also that there is no such window.
        if EffectiveCacheControl(shown).control.staleWhileRevalidate == nil {
            facts.staleWhileRevalidateSeconds = staleWhileRevalidateSeconds
        }
        if imageRules == nil { facts.flags.insert(.isDated) }
        return facts
    }

    /// An answer to `query` as it is told to clients, stored or not, in what it says of where it
    /// came from.
    func forwarded(_ head: ResponseHead, to query: SiteRequest) -> ResponseHead {
        guard settings.rewritesLocation, let originReferences else { return head }
        return head.rewritingReferences(originReferences, isSecure: query.forwardedRequest.isSecure)
    }

    /// The head with which an answer passes by the cache.
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

    /// The tags that a purge finds the answer by, made from `originals`.
    ///
    /// `places` is where it comes from, if its origin has sent it elsewhere.
    func tags(
        of head: ResponseHead, key: [UInt8], _ originals: SiteOriginals?, redirectedURLs: [[UInt8]]
    ) -> EntryTags {
        EntryTags(
            key: key, cacheTags: CacheTags(head, fields: tagFields),
            urls: imageRules == nil ? urls(of: key, originals) : redirectedURLs)
    }

    /// The tags of an answer whose tags are `held` when its origin has said that it still holds: it
    /// may have been kept when other originals were known.
    func tags(stored: [[UInt8]], key: [UInt8], _ originals: SiteOriginals?) -> [[UInt8]] {
        guard imageRules == nil else { return stored }
        let said = stored.filter { URLName.name(inTag: $0) == nil }
        let names = EntryTags(key: key, urls: urls(of: key, originals)).tags
        return names + said.prefix(EntryTags.countMax - names.count)
    }

    private func urls(of key: [UInt8], _ originals: SiteOriginals?) -> [[UInt8]] {
        (isForEveryHost ? originURL(of: key) : [])
            + (originals?.urls(ofKey: key) ?? [])
    }

    /// What the origin is asked for where the answer stands under `key`; empty if that has no
    /// canonical form.
    private func originURL(of key: [UInt8]) -> [[UInt8]] {
        let target = URLName.name(ofKey: key).drop { $0 != UInt8(ascii: "/") }
        let url = Array((site?.origin.description ?? "").utf8) + target
        var canonical: [UInt8] = []
        let result = CacheKey.normalise(url: url.span, at: 0..<url.count, into: &canonical)
        return result == .normalised ? [canonical] : []
    }

    /// The keys of what `query` has changed, as far as `head`, its answer, tells (RFC 9111 §4.4).
    func invalidatedKeys(by head: ResponseHead, _ query: SiteRequest) -> [[UInt8]] {
        let method = query.forwardedRequest.method
        guard
            UnsafeMethodInvalidation.isRequired(
                MethodProperties(method.span, at: 0..<method.count), status: head.status)
        else { return [] }
        let host = query.forwardedRequest.host
        // An origin may speak of itself by its own name or by the one that clients know.
        let targets = UnsafeMethodInvalidation.expanded(
            isSecure: query.forwardedRequest.isSecure, authority: host,
            target: query.forwardedRequest.target,
            response: originReferences.map {
                head.rewritingReferences($0, isSecure: query.forwardedRequest.isSecure)
            } ?? head)
        // The origin is the same, whichever way it was asked.
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
