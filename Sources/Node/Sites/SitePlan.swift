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
final class SitePlan: Sendable {
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
    let images: ImageRules?
    /// What an image's origin is told of each request; empty for a site.
    let reduced: [(fields: [FieldSetting], lines: RequestLines)]
    /// Of all that says how requests are forwarded and answers stored: equal ones do the same.
    let digest: UInt64
    let storing: StoringPolicy
    let reuse: ReusePolicy
    let requestRules: RequestFieldRules
    /// Of answers that are stored and that others may be given.
    let answerRules: AnswerFieldRules
    /// Of all others.
    private let unsharedRules: AnswerFieldRules
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
    private let references: OriginReferences?
    /// Nil if every parameter counts.
    private let filter: QueryFilter?

    /// `objectBytesMax` is the node's own limit; `trust` is the site's own, if it has one.
    convenience init(
        _ number: Int, _ site: Site, objectBytesMax: UInt64, trust: OriginTrust? = nil
    ) {
        self.init(
            number, site, site.settings, images: nil,
            origin: OriginAuthority(
                host: site.origin.host, port: site.origin.port, isSecure: site.origin.isSecure,
                trust: trust),
            StoringPolicy(site.settings), ReusePolicy(site.settings), RequestFieldRules(site),
            objectBytesMax: objectBytesMax)
    }

    /// The site of images, or of those from some origins.
    convenience init(_ rules: ImageRules, _ given: ImageSettings, objectBytesMax: UInt64) {
        var storing = StoringPolicy.image(
            defaultTTL: given.settings.defaultTTL ?? rules.defaultTTL, types: rules.types)
        storing.freshness.ttlMax = given.settings.ttlMax
        var reuse = ReusePolicy(given.settings)
        // What nobody has asked for gives nothing that may be purged.
        if !given.isGraceGiven { reuse.fencedGrace = .zero }
        self.init(
            -1, nil, given.settings, images: rules, origin: nil, storing, reuse,
            RequestFieldRules(given.settings), objectBytesMax: objectBytesMax)
    }

    private init(
        _ number: Int, _ site: Site?, _ settings: SiteSettings, images: ImageRules?,
        origin: OriginAuthority?, _ storing: StoringPolicy, _ reuse: ReusePolicy,
        _ requestRules: RequestFieldRules, objectBytesMax: UInt64
    ) {
        self.number = number
        self.site = site
        name = site?.name ?? "images"
        self.settings = settings
        self.images = images
        self.origin = origin
        digest = Self.digest(of: site, settings)
        self.storing = storing
        self.reuse = reuse
        self.requestRules = requestRules
        reduced = images == nil ? [] : Self.reductions(by: requestRules)
        answerRules = AnswerFieldRules(settings)
        unsharedRules = answerRules.withoutClientControl
        isSigned = settings.isSigned
        staleWhileRevalidateSeconds = UInt32(clamping: settings.staleWhileRevalidate.seconds)
        tagFields = settings.tagFields.names.compactMap {
            TagField(String(decoding: $0, as: UTF8.self))
        }
        originals = site.flatMap(SiteOriginals.init)
        references = site.flatMap { OriginReferences($0.origin, host: $0.settings.sentHost) }
        filter = settings.ignoredQuery.isEmpty ? nil : QueryFilter(ignoring: settings.ignoredQuery)
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
        guard let filter else {
            return SiteKey.append(
                site, host: host, in: bytes, path: path, of: bytes, isSecure: isSecure, to: &key)
        }
        var target: [UInt8] = []
        guard filter.filter(bytes, at: path, into: &target) else {
            return SiteKey.append(
                site, host: host, in: bytes, path: path, of: bytes, isSecure: isSecure, to: &key)
        }
        return SiteKey.append(
            site, host: host, in: bytes, path: 0..<target.count, of: target.span,
            isSecure: isSecure, to: &key)
    }

    /// The host that was asked for, as the origin is told: as it is in the key, whatever was sent.
    func host(_ bytes: Span<UInt8>, at host: Range<Int>, isSecure: Bool) -> [UInt8] {
        guard isForEveryHost else { return Array(name.utf8) }
        var authority: [UInt8] = []
        SiteKey.append(authority: host, in: bytes, isSecure: isSecure, to: &authority)
        return authority
    }

    /// It answers for hosts that no other site is named for.
    var isForEveryHost: Bool { site?.pattern == .everything }

    /// Appends what a signature is for; false if there is no key.
    func appendSigned(
        _ bytes: Span<UInt8>, host: Range<Int>, path: Range<Int>, to text: inout [UInt8]
    ) -> Bool {
        guard let site else { return false }
        return SiteKey.append(site, host: host, in: bytes, path: path, of: bytes, to: &text)
    }

    /// True if this is what `other` was before settings changed.
    func isSuccessor(of other: SitePlan) -> Bool { site?.pattern == other.site?.pattern }

    /// The target that the origin is asked for: path and query without what the site ignores.
    func target(_ bytes: Span<UInt8>, path: Range<Int>) -> [UInt8] {
        var target: [UInt8] = []
        if filter?.filter(bytes, at: path, into: &target) != true { target = bytes.copy(path) }
        // What follows the authority of an absolute target may be empty or begin with the query.
        if target.first != UInt8(ascii: "/"), target != [UInt8(ascii: "*")] {
            target.insert(UInt8(ascii: "/"), at: 0)
        }
        return target
    }

    /// The fields that the origin is told of, which is what its Vary speaks of.
    func told(_ asked: ForwardedRequest, _ lines: RequestLines) -> RequestLines {
        let bytes = lines.bytes
        let told = RequestForwarder.told(
            asked, lines.lines, in: bytes.span, rules: requestRules)
        return RequestLines(bytes: told.bytes, lines: told.lines)
    }

    // MARK: Answers

    /// What is to be known of an answer to `query`.
    func examine(
        _ head: AnswerHead, _ query: SiteRequest, _ receipt: Freshness.Receipt,
        asGet: Bool = false
    ) -> Examination {
        var examination = AnswerRules.examine(
            head,
            to: ExaminedRequest(
                method: asGet || query.isGet ? .get : query.isHead ? .head : .other,
                hasAuthorization: query.hasAuthorization, hasCookie: query.hasCookie,
                isNoStore: query.control.isNoStore),
            receipt: receipt, policy: storing)
        if examination.notStored == nil, let types = settings.types, !types.accept(head) {
            examination.notStored = .contentType
        }
        return examination
    }

    private func rules(of examination: Examination) -> AnswerFieldRules {
        examination.isShareable ? answerRules : unsharedRules
    }

    /// The head under which an answer is stored, or sent to those who wait for it.
    ///
    /// `size` is nil while it is not known; a 204 has none.
    func storedHead(
        _ head: AnswerHead, size: UInt64?, _ examination: Examination, received: WallTime
    ) -> StoredHead {
        render(head, size: size, rules(of: examination), examination.unstoredFields, received)
    }

    /// Of images Date is that of each answer.
    private func render(
        _ head: AnswerHead, size: UInt64?, _ rules: AnswerFieldRules, _ dropped: FieldNames,
        _ received: WallTime
    ) -> StoredHead {
        StoredHead(
            shown(head), size: head.status == 204 ? nil : size, rules: rules, unstored: dropped,
            received: images == nil ? received : nil)
    }

    /// What is shown of the origin's head, before the operator's settings are applied.
    private func shown(_ head: AnswerHead) -> AnswerHead { images == nil ? head : head.asImage }

    /// The head of an answer that is not stored, without the fields `dropped`, which says by whom
    /// it was passed on (RFC 9110 §7.6.3).
    func unstoredHead(
        _ head: AnswerHead, size: UInt64?, without dropped: FieldNames, received: WallTime
    ) -> StoredHead {
        let stored = render(head, size: size, unsharedRules, dropped, received)
        guard unsharedRules.addsVia else { return stored }
        var bytes = stored.bytes
        Via.append(version: StatusLine.version(head), to: &bytes)
        return StoredHead(
            rendered: bytes, partialStart: stored.partialStart,
            multipartStart: stored.multipartStart, notModifiedStart: stored.notModifiedStart,
            contentType: stored.contentType, entityTag: stored.entityTag)
    }

    /// The facts of an answer that came with `head` and is stored with `stored`.
    func facts(
        _ examination: Examination, size: UInt64, _ stored: StoredHead, of head: AnswerHead
    ) -> EntryFacts {
        var facts = examination.facts(size: size, head: stored)
        let shown = shown(head)
        facts.flags.formUnion(rules(of: examination).flags(for: shown))
        // What the origin says counts, also that there is no such window.
        if AnswerControl(shown).control.staleWhileRevalidate == nil {
            facts.staleWhileRevalidateSeconds = staleWhileRevalidateSeconds
        }
        if images == nil { facts.flags.insert(.isDated) }
        return facts
    }

    /// An answer to `query` as it is told to clients, stored or not, in what it says of where it
    /// came from.
    func told(_ head: AnswerHead, to query: SiteRequest) -> AnswerHead {
        guard settings.rewritesLocation, let references else { return head }
        return head.naming(references, isSecure: query.asked.isSecure)
    }

    /// The head with which an answer passes by the cache.
    func passedHead(
        _ head: AnswerHead, takesTrailers: Bool, received: WallTime
    ) -> StoredHead {
        var bytes: [UInt8] = []
        AnswerForwarder.append(
            head, rules: answerRules, passesTrailers: takesTrailers, received: received,
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
        of head: AnswerHead, key: [UInt8], _ originals: SiteOriginals?, places: [[UInt8]]
    ) -> EntryTags {
        EntryTags(
            key: key, answer: AnswerTags(head, fields: tagFields),
            urls: images == nil ? urls(of: key, originals) : places)
    }

    /// The tags of an answer whose tags are `held` when its origin has said that it still holds: it
    /// may have been kept when other originals were known.
    func tags(held: [[UInt8]], key: [UInt8], _ originals: SiteOriginals?) -> [[UInt8]] {
        guard images == nil else { return held }
        let said = held.filter { URLName.name(inTag: $0) == nil }
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
        return result == .made ? [canonical] : []
    }

    /// The keys of what `query` has changed, as far as `head`, its answer, tells (RFC 9111 §4.4).
    func invalidated(by head: AnswerHead, _ query: SiteRequest) -> [[UInt8]] {
        let method = query.asked.method
        guard
            Invalidation.isDue(
                MethodRules(method.span, at: 0..<method.count), status: head.status)
        else { return [] }
        let host = query.asked.host
        // An origin may speak of itself by its own name or by the one that clients know.
        let targets = Invalidation.targets(
            isSecure: query.asked.isSecure, authority: host, target: query.asked.target,
            answer: references.map {
                head.naming($0, isSecure: query.asked.isSecure)
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
