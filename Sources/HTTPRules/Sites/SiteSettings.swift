package import Ground

/// An operator's settings for one site; the defaults are a plain, transparent shared cache.
package struct SiteSettings: Hashable, Sendable {
    /// The source of the Host that the origin receives (RFC 9110 §7.2).
    package enum OriginHostRule: Hashable, Sendable {
        /// The authority of the origin's base URL.
        case origin
        /// The authority that the client requested.
        case client
        /// This name, regardless of the request.
        case name(String)
    }

    /// The handling of X-Forwarded-For and similar fields.
    package enum ForwardedFor: String, CaseIterable, Hashable, Sendable {
        /// The client's address is appended to the client's value.
        case append
        /// The client's value is replaced with its address.
        case replace
        /// The client's value is forwarded unchanged, and nothing is added.
        case off
    }

    /// Request fields that are reduced to the differences that the node distinguishes.
    package struct Normalisations: OptionSet, Hashable, Sendable {
        /// The bits, one for each field.
        package let rawValue: UInt8

        /// Creates a set from its bits.
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Reduces Accept to those of AVIF, WebP, JPEG XL and SVG that it names.
        package static let accept = Normalisations(rawValue: 1 << 0)
        /// Reduces Accept-Encoding to one of br, gzip and identity.
        package static let acceptEncoding = Normalisations(rawValue: 1 << 1)
    }

    /// The lifetime of responses with one status that name none.
    package struct StatusTTL: Hashable, Sendable {
        /// The status code.
        package var status: UInt16
        /// The lifetime.
        package var ttl: Interval

        /// Creates a rule for one status from its parts.
        package init(status: UInt16, ttl: Interval) {
            self.status = status
            self.ttl = ttl
        }
    }

    /// A field line that the operator sets.
    package struct Field: Hashable, Sendable {
        /// The name as written into a head; compared case-insensitively.
        package var name: [UInt8]
        /// The value of the field.
        package var value: [UInt8]
        /// The path of the file that holds the value; `nil` if the settings hold it.
        package var file: String?

        /// Creates a field from its parts, without a file.
        package init(name: [UInt8], value: [UInt8]) {
            self.name = name
            self.value = value
        }
    }

    // Storing
    /// The lifetime of responses that name none; `nil` for the heuristic alone (RFC 9111 §4.2.2).
    package var defaultTTL: Interval?
    /// The ceiling for the lifetime of all responses; `nil` for none.
    package var ttlMax: Interval?
    /// The lifetimes by status, in ascending order of status, each once; they take precedence over
    /// ``defaultTTL``.
    package var negativeTTLs: [StatusTTL] = []
    /// The media types that are stored; other responses are only forwarded.
    ///
    /// `nil` for all types.
    package var types: SiteMediaTypes?
    /// The maximum length of a stored body in bytes; `nil` for the node's own limit, which always
    /// applies.
    package var objectBytesMax: UInt64?
    /// True if responses with Set-Cookie are stored like any other (RFC 9111 §7.3).
    ///
    /// If false, they are stored only if a targeted field permits it (RFC 9213).
    package var storesSetCookie = false
    /// True if a lifetime is guessed even if the request had Cookie or Authorization, or the
    /// response has Set-Cookie.
    package var ignoresCredentials = false
    /// The percentage of the node's memory that the site's responses may use; `nil` for all of it.
    package var memoryShare: Int?
    /// The percentage of the node's disk that the site's responses may use; `nil` for all of it.
    package var diskShare: Int?

    // Serving
    /// The stale-while-revalidate time of responses that name none (RFC 5861 §3).
    package var staleWhileRevalidate = Interval.zero
    /// The time past their lifetime in which responses may be used while the origin fails.
    package var grace = Interval.zero
    /// True if Cache-Control and Pragma of requests are honoured (RFC 9111 §5.2.1).
    package var honoursRequestControl = false

    /// True if the nodes of a cluster request responses from each other before the origin.
    package var usesPeers = true

    /// True if only signed URLs are served, and only for reading.
    package var requiresSignature = false

    // Requests to the origin
    /// The source of the Host that the origin receives.
    package var originHostRule = OriginHostRule.origin
    /// The names of query parameters that are removed from key and target; a name that ends in `*`
    /// is a prefix.
    package var ignoredQuery: [String] = []
    /// The only methods that are accepted, case-sensitive; empty for all.
    ///
    /// A request with another method receives 405.
    package var methods: [String] = []
    /// The protocols that the origin may switch to (RFC 9110 §7.8), in lower case and without
    /// versions.
    package var upgrades: [String] = []
    /// The request fields that are forwarded by name, even those that origins act on and no key
    /// holds.
    package var forwardedFields = FieldNames()
    /// True if other fields are forwarded, except those that origins are known to act on.
    package var forwardsOthers = true
    /// True if trailer fields of requests are forwarded (RFC 9110 §6.5).
    package var forwardsTrailers = false
    /// The request fields that are removed.
    package var removedRequestFields = FieldNames()
    /// The request fields that the operator sets; they replace the client's.
    package var overriddenRequestFields: [Field] = []
    /// The request fields that are reduced to a few values.
    package var normalisations: Normalisations = []
    /// The handling of X-Forwarded-For and similar fields.
    package var forwardedFor = ForwardedFor.append
    /// True if the node adds itself to Via in requests and responses (RFC 9110 §7.6.3).
    package var addsVia = true

    // Authentication of the origin over TLS
    /// A file of issuers in PEM, trusted instead of all others; `nil` for the node's own.
    package var originCAFile: String?
    /// The pins of the only keys that the origin's certificate may have, `sha256/…` (RFC 7469
    /// §2.4); empty for any.
    package var originPins: [String] = []

    // Responses to clients
    /// The max-age that clients receive with stored, shareable responses instead of the origin's
    /// Cache-Control and Expires; `nil` for the origin's own.
    package var clientTTL: Interval?
    /// True if references to the origin in responses are rewritten to the site.
    package var rewritesLocation = true
    /// The response fields that are removed.
    package var removedResponseFields = FieldNames()
    /// The response fields that the operator sets; they replace the origin's.
    package var overriddenResponseFields: [Field] = []
    /// The fields that carry a response's tags.
    package var tagFields = FieldNames(["surrogate-key", "cache-tag", "xkey"])
    /// True if clients receive the fields that carry tags.
    package var exposesTags = false
    /// The rules by which URLs of responses name their originals.
    package var originals: [OriginalRule] = []

    /// Creates the default settings.
    package init() {}

    /// The default settings of the image API: stale images while an origin fails, short lifetimes
    /// for missing ones, and as little of the client's request as possible forwarded.
    package static var images: SiteSettings {
        var settings = SiteSettings()
        settings.addsVia = false
        settings.normalisations = [.accept, .acceptEncoding]
        settings.grace = .seconds(86_400)
        settings.negativeTTLs = [404, 410].map { StatusTTL(status: $0, ttl: .seconds(10)) }
        return settings
    }

    /// Returns true if a request with the method in `range` of `bytes` is accepted.
    package func allows(method bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        methods.isEmpty || methods.contains { bytes.matches($0, at: range) }
    }
}

/// One site: the hosts it serves, its origin, and its settings.
///
/// A class, so that passing it on costs one reference count and not one for each of its lists. It
/// is immutable; a change of settings creates new sites.
package final class Site: Sendable {
    /// The hosts that the site serves.
    package let pattern: SitePattern
    /// The base URL of the origin.
    package let origin: BaseURL
    /// The settings of the site.
    package let settings: SiteSettings
    /// The name of the site in metrics and logs.
    package let name: String
    /// The prefix of the keys of its responses, `//` and ``name``; empty if it depends on Host.
    let keyPrefix: [UInt8]

    /// Creates a site from its parts.
    package init(_ pattern: SitePattern, origin: BaseURL, settings: SiteSettings = SiteSettings()) {
        self.pattern = pattern
        self.origin = origin
        self.settings = settings
        name = pattern.description
        keyPrefix = pattern.keyPrefix
    }
}

extension SitePattern {
    /// The prefix of the keys of a site's responses; empty if it depends on Host.
    var keyPrefix: [UInt8] { self == .catchAll ? [] : Array("//\(self)".utf8) }
}

extension Site: Equatable {
    /// Returns true if pattern, origin and settings are equal.
    package static func == (left: Site, right: Site) -> Bool {
        left.pattern == right.pattern && left.origin == right.origin
            && left.settings == right.settings
    }
}
