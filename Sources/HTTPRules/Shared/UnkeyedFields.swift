import Ground

/// Request fields that origins are known to act on though no cache has them in its keys: what one
/// client says in them would be in the answers that others get (cache poisoning).
///
/// They are not forwarded unless a site names them.
package enum UnkeyedFields {
    /// The names, in lower case and in the order of the alphabet; beside them every name with `_`,
    /// which CGI and WSGI cannot tell from the same with `-`.
    package static let names: [String] = [
        "cf-connecting-ip", "client-ip", "fastly-client-ip", "front-end-https", "max-forwards",
        "proxy", "true-client-ip", "x-client-ip", "x-cluster-client-ip", "x-envoy-original-path",
        "x-forwarded", "x-forwarded-host", "x-forwarded-path", "x-forwarded-port",
        "x-forwarded-prefix", "x-forwarded-proto", "x-forwarded-protocol", "x-forwarded-scheme",
        "x-forwarded-server", "x-forwarded-ssl", "x-forwarded-uri", "x-host",
        "x-http-host-override", "x-http-method", "x-http-method-override", "x-method-override",
        "x-middleware-prefetch", "x-middleware-subrequest", "x-original-host", "x-original-uri",
        "x-original-url", "x-real-ip", "x-rewrite-url", "x-script-name", "x-url-scheme",
    ]

    /// True if the name in `range` of `bytes` is one of them, without regard to case.
    static func contains(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        for index in range where bytes[index] == UInt8(ascii: "_") { return true }
        return names.contains { bytes.matchesIgnoringCase($0, at: range) }
    }
}
