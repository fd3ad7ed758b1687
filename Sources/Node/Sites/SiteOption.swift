import HTTPRules

/// Every setting of one site; the raw value is the key in the file.
package enum SiteOption: String, CaseIterable, Hashable, Sendable {
    case origin
    case host
    case defaultTTL = "default-ttl"
    case ttlLimit = "ttl-limit"
    case negativeTTL = "negative-ttl"
    case types
    case objectLimit = "object-limit"
    case storesSetCookie = "stores-set-cookie"
    case ignoreCredentials = "ignore-credentials"
    case memoryShare = "memory-share"
    case diskShare = "disk-share"
    case cluster
    case staleWhileRevalidate = "stale-while-revalidate"
    case grace
    case honoursRequestControl = "honours-request-control"
    case ignoreQuery = "ignore-query"
    case methods
    case upgrade
    case forwardFields = "forward-fields"
    case requestTrailers = "request-trailers"
    case removeRequestFields = "remove-request-fields"
    case setRequestFields = "set-request-fields"
    case reduce
    case forwardedFor = "forwarded-for"
    case via
    case rewriteLocation = "rewrite-location"
    case clientTTL = "client-ttl"
    case removeResponseFields = "remove-response-fields"
    case setResponseFields = "set-response-fields"
    case tags
    case keepTags = "keep-tags"
    case originals
    case signed
    case originCA = "origin-ca"
    case originPins = "origin-pins"

    /// What a value may be.
    package var allowedFormat: String {
        switch self {
        case .origin: "http://ORIGIN[:PORT][/PATH] or https://ORIGIN[:PORT][/PATH]"
        case .host: "origin, client, or HOST or HOST:PORT"
        case .defaultTTL, .ttlLimit, .staleWhileRevalidate, .grace, .clientTTL:
            "a duration of 0s…3650d in ms, s, m, h, d"
        case .negativeTTL: "a mapping or a list of STATUS=DURATION, STATUS of 200…599"
        case .types: "a list of TYPE/SUBTYPE or TYPE/*"
        case .objectLimit: "a size of 1B…1TiB, at most the node's object-limit"
        case .memoryShare, .diskShare: "1%…100%"
        case .storesSetCookie, .ignoreCredentials, .honoursRequestControl, .requestTrailers, .via,
            .keepTags, .rewriteLocation, .signed, .cluster:
            "on or off, true or false"
        case .ignoreQuery: "a list of names, or beginnings of names with * behind them"
        case .methods: "a list of methods, in their own case"
        case .upgrade: "a list of protocols, none of them HTTP or TLS"
        case .forwardFields: "a list of field names, all among them for those that need no name"
        case .removeRequestFields, .removeResponseFields, .tags: "a list of field names"
        case .setRequestFields:
            "a mapping of field names to values or to {file: PATH}, none of them of framing or one "
                + "hop"
        case .setResponseFields:
            "a mapping of field names to values, none of them of framing or one hop"
        case .originals:
            "a list of at most \(SiteOriginals.rulesMax): \(OriginalRule.allowed)"
        case .originCA: "a PEM file with issuers, which are believed in place of all others"
        case .originPins: "a list of sha256/ and 32 bytes in base64: keys of certificates"
        case .reduce: "a list of accept, accept-encoding"
        case .forwardedFor: "append, replace, off"
        }
    }

    /// A value that would be accepted.
    package var example: String {
        switch self {
        case .origin: "http://127.0.0.1:9000"
        case .host: "client"
        case .defaultTTL, .ttlLimit, .staleWhileRevalidate, .grace, .clientTTL: "10m"
        case .negativeTTL: "{404: 10s}"
        case .types: "[image/*, text/css]"
        case .objectLimit: "16MiB"
        case .memoryShare, .diskShare: "25%"
        case .storesSetCookie, .ignoreCredentials, .honoursRequestControl, .requestTrailers, .via,
            .keepTags, .rewriteLocation, .signed, .cluster:
            "off"
        case .ignoreQuery: "[utm_*, fbclid]"
        case .methods: "[GET, HEAD]"
        case .upgrade: "[websocket]"
        case .forwardFields: "[Accept, Accept-Language]"
        case .removeRequestFields: "[Cookie]"
        case .removeResponseFields: "[X-Powered-By]"
        case .tags: "[Surrogate-Key]"
        case .originals: "[imgproxy]"
        case .setRequestFields: "{X-Edge: nuthatch}"
        case .setResponseFields: "{Access-Control-Allow-Origin: \"*\"}"
        case .originCA: "/etc/nuthatch/tls/origin-ca.pem"
        case .originPins: "[sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]"
        case .reduce: "[accept-encoding]"
        case .forwardedFor: "replace"
        }
    }

    /// What the values are is shown nowhere: which field holds a secret its name does not tell.
    var isSecret: Bool { self == .setRequestFields }

    /// The one whose name takes the fewest edits to get from `text`, if few are enough.
    static func nearest(to text: String, among options: [SiteOption]) -> SiteOption? {
        Spelling.nearest(to: text, among: options.map { ($0, $0.rawValue) })
    }
}
