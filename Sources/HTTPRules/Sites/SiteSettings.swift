package import Ground

/// What an operator says of one site; the defaults are a plain, transparent shared cache.
package struct SiteSettings: Hashable, Sendable {
    /// What the origin is told was asked for (RFC 9110 §7.2).
    package enum OriginHostRule: Hashable, Sendable {
        /// The authority of the base URL.
        case origin
        /// What the client sent.
        case client
        /// This, whatever was sent.
        case name(String)
    }

    /// What becomes of X-Forwarded-For and its like.
    package enum ForwardedFor: String, CaseIterable, Hashable, Sendable {
        /// The client's address goes behind what the client sent.
        case append
        /// What the client sent is dropped, and its address stands alone.
        case replace
        /// Nothing is added, and what the client sent passes as it is.
        case off
    }

    /// Fields of a request that are brought down to what the node can tell apart.
    package struct Normalisations: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Accept: which of AVIF, WebP, JPEG XL and SVG are read.
        package static let accept = Normalisations(rawValue: 1 << 0)
        /// Accept-Encoding: one of br, gzip and identity.
        package static let acceptEncoding = Normalisations(rawValue: 1 << 1)
    }

    /// How long an answer with one status is fresh when it does not say.
    package struct StatusTTL: Hashable, Sendable {
        package var status: UInt16
        package var ttl: Interval

        package init(status: UInt16, ttl: Interval) {
            self.status = status
            self.ttl = ttl
        }
    }

    /// A field line that the node sets.
    package struct Field: Hashable, Sendable {
        /// As it is written into a head; compared without regard to case.
        package var name: [UInt8]
        package var value: [UInt8]
        /// Path of the file that holds the value; nil if the settings do.
        package var file: String?

        package init(name: [UInt8], value: [UInt8]) {
            self.name = name
            self.value = value
        }
    }

    // Storing
    /// Freshness of answers that name none; nil for the heuristic alone (RFC 9111 §4.2.2).
    package var defaultTTL: Interval?
    /// No answer is fresh for longer; nil for no ceiling.
    package var ttlMax: Interval?
    /// In the order of their statuses, each once; they come before ``defaultTTL``.
    package var negativeTTLs: [StatusTTL] = []
    /// Answers of other types are passed on and not stored; nil for all.
    package var types: SiteMediaTypes?
    /// Bytes of the largest body that is stored; nil for the node's own limit, which also stands.
    package var objectBytesMax: UInt64?
    /// Whether answers with Set-Cookie are stored as any other (RFC 9111 §7.3); otherwise only
    /// where a field aimed at this cache grants it (RFC 9213).
    package var storesSetCookie = false
    /// Whether a lifetime is guessed also where the request had Cookie or Authorization, or the
    /// answer has Set-Cookie.
    package var ignoresCredentials = false
    /// Percent of the node's memory that the site's answers may take; nil for all of it.
    package var memoryShare: Int?
    /// Percent of the node's disk; nil for all of it.
    package var diskShare: Int?

    // Serving
    /// stale-while-revalidate of answers that name none (RFC 5861 §3).
    package var staleWhileRevalidate = Interval.zero
    /// For how long answers may be used past their freshness while the origin fails.
    package var grace = Interval.zero
    /// Whether Cache-Control and Pragma of requests count (RFC 9111 §5.2.1).
    package var honoursRequestControl = false

    /// Whether the nodes of a cluster ask each other before they ask the origin.
    package var usesPeers = true

    /// Whether only signed URLs are answered, and only to be read.
    package var requiresSignature = false

    // What is asked of the origin
    package var originHostRule = OriginHostRule.origin
    /// Names of query parameters that are taken out of key and target; one that ends in `*` stands
    /// for all that begin so.
    package var ignoredQuery: [String] = []
    /// The only methods that are taken, with regard to case; empty for all.
    ///
    /// Others get 405.
    package var methods: [String] = []
    /// Protocols that the origin may switch to (RFC 9110 §7.8), in lower case and without versions.
    package var upgrades: [String] = []
    /// Request fields that are forwarded by name, also those that origins act on and no key holds.
    package var forwardedFields = FieldNames()
    /// Whether the others are forwarded that origins are not known to act on.
    package var forwardsOthers = true
    /// Whether trailer fields of requests are forwarded (RFC 9110 §6.5).
    package var forwardsTrailers = false
    package var removedRequestFields = FieldNames()
    package var overriddenRequestFields: [Field] = []
    package var normalisations: Normalisations = []
    package var forwardedFor = ForwardedFor.append
    /// Whether the node names itself in Via (RFC 9110 §7.6.3), both ways.
    package var addsVia = true

    // Whom to believe as the origin, over TLS
    /// A file of issuers in PEM, which are trusted in place of all others; nil for the node's.
    package var originCAFile: String?
    /// Pins of the only keys that its certificate may have, `sha256/…` (RFC 7469 §2.4); empty for
    /// any.
    package var originPins: [String] = []

    // What clients get
    /// The max-age that clients are given instead of the origin's Cache-Control; nil for the
    /// origin's own.
    package var clientTTL: Interval?
    /// Whether references of answers to the origin become references to the site.
    package var rewritesLocation = true
    package var removedResponseFields = FieldNames()
    package var overriddenResponseFields: [Field] = []
    /// Fields that carry an answer's tags.
    package var tagFields = FieldNames(["surrogate-key", "cache-tag", "xkey"])
    /// Whether clients see those.
    package var exposesTags = false
    /// How the URLs of answers name the originals that those are made from.
    package var originals: [OriginalRule] = []

    package init() {}

    /// The defaults of images that are asked for by their URLs: what their users expect while an
    /// origin fails, or has none, and of what a client says as little as can be.
    package static var images: SiteSettings {
        var settings = SiteSettings()
        settings.addsVia = false
        settings.normalisations = [.accept, .acceptEncoding]
        settings.grace = .seconds(86_400)
        settings.negativeTTLs = [404, 410].map { StatusTTL(status: $0, ttl: .seconds(10)) }
        return settings
    }

    /// True if a request with the method in `range` of `bytes` is taken.
    package func allows(method bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        methods.isEmpty || methods.contains { bytes.matches($0, at: range) }
    }
}

/// One site: what it answers to, where its answers come from, and what its operator wants.
///
/// A class, so that handing it on costs one count and not one for each of its lists. It never
/// changes; a change of settings makes new sites.
package final class Site: Sendable {
    package let pattern: SitePattern
    package let origin: BaseURL
    package let settings: SiteSettings
    /// What the site is called in metrics and logs.
    package let name: String
    /// `//` and ``name``: how the keys of its answers begin; empty where that depends on Host.
    let keyPrefix: [UInt8]

    package init(_ pattern: SitePattern, origin: BaseURL, settings: SiteSettings = SiteSettings()) {
        self.pattern = pattern
        self.origin = origin
        self.settings = settings
        name = pattern.description
        keyPrefix = pattern.keyPrefix
    }
}

extension SitePattern {
    /// How the keys of a site's answers begin; empty where that depends on Host.
    var keyPrefix: [UInt8] { self == .catchAll ? [] : Array("//\(self)".utf8) }
}

extension Site: Equatable {
    package static func == (left: Site, right: Site) -> Bool {
        left.pattern == right.pattern && left.origin == right.origin
            && left.settings == right.settings
    }
}
