import HTTPRules

/// The table of the options of sites and images: each is declared once; the keys of the file, help,
/// pages and what is listed follow from it.
package struct SiteOptions: Sendable {
    package let origin = SiteOption(
        "origin", allowed: "http://ORIGIN[:PORT][/PATH] or https://ORIGIN[:PORT][/PATH]",
        example: "http://127.0.0.1:9000", meaning: "Base URL of the origin; every site has one")

    package let host = SiteOption(
        "host", .originHost, \.originHostRule,
        meaning: "Host sent to the origin: the base URL's, the client's, or a given name")

    package let defaultTTL = SiteOption(
        "default-ttl", .duration, \.defaultTTL, in: .everywhere,
        meaning: "Lifetime of responses that give none; replaces the heuristic for sites and the "
            + "node's default-ttl for images")

    package let ttlLimit = SiteOption(
        "ttl-limit", .duration, \.ttlMax, in: .everywhere,
        meaning: "Upper limit for every lifetime")

    package let negativeTTL = SiteOption(
        "negative-ttl", .statusTTLs, \.negativeTTLs, in: .everywhere,
        meaning: "Lifetime by status of responses that give none; images: 400…499 except 407, "
            + "408, 425 and 429")

    package let types = SiteOption(
        "types", .mediaTypes, \.types, absent: "any",
        meaning: "Content types that are stored; others pass through")

    package let objectLimit = SiteOption(
        "object-limit", .size, \.objectBytesMax, in: .everywhere, absent: "the node's",
        meaning: "Largest body that is stored")

    package let storesSetCookie = SiteOption(
        "stores-set-cookie", .onOff, \.storesSetCookie,
        meaning: "Whether responses with Set-Cookie are stored like others")

    package let ignoreCredentials = SiteOption(
        "ignore-credentials", .onOff, \.ignoresCredentials,
        meaning: "Whether heuristic lifetimes are used despite cookies and Authorization")

    package let memoryShare = SiteOption(
        "memory-share", .percent, \.memoryShare, in: [.site, .images],
        meaning: "Share of memory that the site, or all images together, may use")

    package let diskShare = SiteOption(
        "disk-share", .percent, \.diskShare, in: [.site, .images],
        meaning: "Share of disk that the site, or all images together, may use")

    package let cluster = SiteOption(
        "cluster", .onOff, \.usesPeers, in: .everywhere,
        meaning: "Whether nodes of a cluster ask each other before the origin")

    package let staleWhileRevalidate = SiteOption(
        "stale-while-revalidate", .duration, \.staleWhileRevalidate, in: .everywhere,
        meaning: "Time past its lifetime for which a response is used while it is revalidated, "
            + "unless it gives one (RFC 5861)")

    package let grace = SiteOption(
        "grace", .duration, \.grace, in: .everywhere,
        meaning: "Time past its lifetime for which a response may be used while the origin fails")

    package let honoursRequestControl = SiteOption(
        "honours-request-control", .onOff, \.honoursRequestControl,
        meaning: "Whether Cache-Control and Pragma in requests are obeyed")

    package let ignoreQuery = SiteOption(
        "ignore-query", .parameters, \.ignoredQuery,
        meaning: "Query parameters removed from the cache key and the request")

    package let methods = SiteOption(
        "methods", .methods, \.methods, absent: "all but CONNECT and TRACE",
        meaning: "Accepted methods; others get 405")

    package let upgrade = SiteOption(
        "upgrade", .protocols, \.upgrades,
        meaning: "Protocols that a connection to the origin may be upgraded to")

    package let forwardFields = SiteOption(
        "forward-fields", .forwardedFields, \.forwarding,
        meaning: "Request fields forwarded to the origin; all stands for those that are safe")

    package let requestTrailers = SiteOption(
        "request-trailers", .onOff, \.forwardsTrailers,
        meaning: "Whether trailer fields of requests are forwarded")

    package let removeRequestFields = SiteOption(
        "remove-request-fields", .requestFields, \.removedRequestFields, in: .everywhere,
        meaning: "Request fields not forwarded to the origin")

    package let setRequestFields = SiteOption(
        "set-request-fields",
        .fields(
            "a mapping of field names to values or to {file: PATH}, without framing and "
                + "hop-by-hop fields",
            example: "{X-Edge: nuthatch}", isSecret: true, SiteText.requestFieldName),
        \.overriddenRequestFields, in: [.site, .imageOrigins], isSecret: true,
        meaning: "Request fields set on requests to the origin; their values are never shown")

    package let reduce = SiteOption(
        "reduce", .normalisations, \.normalisations,
        meaning: "Request fields that are normalised to a few forms")

    package let forwardedFor = SiteOption(
        "forwarded-for", .forwardedFor, \.forwardedFor,
        meaning: "Handling of X-Forwarded-For: the client's address is appended, replaces it, or "
            + "the field stays as it is")

    package let via = SiteOption(
        "via", .onOff, \.addsVia,
        meaning: "Whether the node adds itself to Via in requests, and in responses that are not "
            + "stored")

    package let rewriteLocation = SiteOption(
        "rewrite-location", .onOff, \.rewritesLocation,
        meaning: "Whether URLs of the origin in responses are rewritten to the site")

    package let clientTTL = SiteOption(
        "client-ttl", .duration, \.clientTTL, in: .everywhere, absent: "the origin's",
        meaning: "max-age sent to clients with responses that are stored and shared")

    package let removeResponseFields = SiteOption(
        "remove-response-fields", .responseFields(example: "[X-Powered-By]"),
        \.removedResponseFields, in: .everywhere,
        meaning: "Response fields not sent to clients")

    package let setResponseFields = SiteOption(
        "set-response-fields",
        .fields(
            "a mapping of field names to values, without framing and hop-by-hop fields",
            example: "{Access-Control-Allow-Origin: \"*\"}", SiteText.responseFieldName),
        \.overriddenResponseFields, in: .everywhere,
        meaning: "Response fields set on responses to clients")

    package let tags = SiteOption(
        "tags", .responseFields(example: "[Surrogate-Key]"), \.tagFields, in: .everywhere,
        meaning: "Response fields that carry a response's tags, for purges")

    package let keepTags = SiteOption(
        "keep-tags", .onOff, \.exposesTags,
        meaning: "Whether clients receive the fields with tags")

    package let originals = SiteOption(
        "originals", .originals, \.originals,
        meaning: "How URLs name the originals of their images, for purges")

    package let signed = SiteOption(
        "signed", .onOff, \.requiresSignature,
        meaning: "Whether only signed URLs are served; needs the node's signing-key-file")

    package let originCA = SiteOption(
        "origin-ca", .issuers, \.originCAFile, absent: "the node's trust",
        meaning: "PEM file with the only issuers of the origin's certificate")

    package let originPins = SiteOption(
        "origin-pins", .pins, \.originPins, absent: "any key",
        meaning: "Accepted keys of the origin's certificate (RFC 7469)")

    /// Creates the table.
    init() {}
}
