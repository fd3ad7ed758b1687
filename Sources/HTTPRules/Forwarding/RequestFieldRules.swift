package import Ground

/// The rules of a site for the request fields that its origin receives.
///
/// Without settings, all end-to-end fields are forwarded unchanged, except ``UnkeyedFields``.
package struct RequestFieldRules: Hashable, Sendable {
    /// The source of the Host that the origin receives (RFC 9110 §7.2).
    package enum HostRule: Hashable, Sendable {
        /// The origin's own authority.
        case origin
        /// The authority that the client requested.
        case client
        /// A value that the operator set.
        case fixed([UInt8])
    }

    /// The handling of fields that describe the client and its request.
    package enum ForwardedRule: Hashable, Sendable {
        /// Nothing is added; the client's X-Forwarded-For is forwarded unchanged.
        case unchanged
        /// The connecting address is added to the client's X-Forwarded-For; the other fields hold
        /// what this node saw.
        case added
        /// All fields hold only what this node saw.
        case replaced
    }

    /// The host and port of the origin.
    package var authority: [UInt8]
    /// The prefix of every path, without a slash at its end.
    package let basePath: [UInt8]
    /// The source of the Host that the origin receives.
    package var host = HostRule.origin
    /// The handling of X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, and of Forwarded (RFC
    /// 7239) if the client sent it.
    package var forwarded = ForwardedRule.added
    /// The fields that are removed.
    package var removed = FieldNames()
    /// The fields that are forwarded as the client sent them, even if they are ``UnkeyedFields``.
    package var forwardedNames = FieldNames()
    /// True if fields that are not in ``forwardedNames`` are forwarded, except ``UnkeyedFields``.
    ///
    /// If false, only those are forwarded without which the request would have another meaning.
    package var forwardsOthers = true
    /// True if trailer fields are forwarded where these rules and ``TrailerFields`` permit it.
    package var forwardsTrailers = false
    /// The lines that replace the client's of the same name; each satisfies ``mayChange(_:)``.
    package var overriddenLines: [FieldSetting] = []
    /// True if Accept of GET and HEAD is reduced to one of a few values: see
    /// ``NegotiationNormaliser``.
    package var normalisesAccept = false
    /// True if Accept-Encoding of GET and HEAD is reduced to one coding: see
    /// ``NegotiationNormaliser``.
    package var normalisesAcceptEncoding = false
    /// True if the node adds itself to Via (RFC 9110 §7.6.3).
    package var addsVia = true
    /// The number of passes through nodes of this name, by Via or CDN-Loop of the request, from
    /// which on it is not forwarded.
    ///
    /// This stops loops in which every round requests something else.
    package var hopsMax = 8

    /// Creates the rules of a site without settings.
    ///
    /// - Parameters:
    ///   - authority: the host and port of the origin.
    ///   - basePath: the prefix of every path; a slash at its end is dropped.
    package init(authority: [UInt8], basePath: [UInt8] = []) {
        self.authority = authority
        self.basePath =
            basePath.last == UInt8(ascii: "/") ? Array(basePath.dropLast()) : basePath
    }

    /// Returns true for a field that an operator may set or remove in requests.
    ///
    /// False for fields that frame a message or are hop-by-hop, and for those that other rules
    /// decide: Host, Via, CDN-Loop, conditions, ranges.
    package static func mayChange(_ name: [UInt8]) -> Bool {
        let bytes = name.span
        let id = FieldName(bytes, at: name.indices)
        switch id {
        case .contentLength, .expect, .host, .ifMatch, .ifModifiedSince, .ifNoneMatch, .ifRange,
            .ifUnmodifiedSince, .range, .via:
            return false
        default:
            return !name.isEmpty && !CDNLoop.isFieldName(bytes, at: name.indices)
                && !HopByHop.isHopByHop(bytes, at: name.indices, id: id)
        }
    }

    /// Returns true if these rules permit forwarding a client's end-to-end line.
    ///
    /// ``RequestForwarder`` leaves out or changes some of these lines nevertheless.
    func forwards(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        let name = line.name.range
        if line.id == .accept, normalisesAccept { return false }
        if line.id == .acceptEncoding, normalisesAcceptEncoding { return false }
        if removed.contains(bytes, at: name) || self.overriddenLines.contains(bytes, at: name) {
            return false
        }
        if forwardedNames.contains(bytes, at: name) || Self.isEssential(line, in: bytes) {
            return true
        }
        return forwardsOthers && !UnkeyedFields.contains(bytes, at: name)
    }

    /// Returns true if the origin is known to receive the client's field of this name unchanged,
    /// without looking at the request.
    ///
    /// - Parameter name: a field name in lower case.
    /// - Returns: true for few fields only; false does not mean that the field changes.
    package func forwardsUnchanged(_ name: [UInt8]) -> Bool {
        let isKnown: Bool
        switch FieldName(name.span, at: name.indices) {
        case .accept: isKnown = !normalisesAccept
        case .acceptEncoding: isKnown = !normalisesAcceptEncoding
        default: isKnown = name.elementsEqual("accept-language".utf8)
        }
        return isKnown && (forwardsOthers || forwardedNames.contains(name.span, at: name.indices))
            && !removed.contains(name.span, at: name.indices)
            && !overriddenLines.contains(name.span, at: name.indices)
    }

    /// Returns the forwarded trailer section of a request with these trailer fields (RFC 9110
    /// §6.5.1); empty unless ``forwardsTrailers``.
    package func trailers(_ lines: [FieldLine], in bytes: Span<UInt8>) -> [UInt8] {
        guard forwardsTrailers else { return [] }
        return TrailerFields.section(lines.filter { forwards($0, in: bytes) }, in: bytes)
    }

    /// Returns true if the operator removes or sets the field of `line`.
    package func isConfigured(_ line: FieldSetting) -> Bool {
        let name = line.name.span
        return removed.contains(name, at: line.name.indices)
            || overriddenLines.contains(name, at: line.name.indices)
    }

    /// Returns the operator's lines, then ``normalisedLines(_:)`` for the client's `lines`.
    func operatorLines(_ lines: [FieldLine], in bytes: Span<UInt8>) -> [FieldSetting] {
        guard normalisesAccept || normalisesAcceptEncoding else { return self.overriddenLines }
        return self.overriddenLines
            + normalisedLines(NegotiationNormaliser(lines, in: bytes).negotiation)
    }

    /// Returns the lines of the reduced Accept and Accept-Encoding, each only if it is normalised
    /// and the operator neither removes nor sets the field.
    package func normalisedLines(_ negotiation: Negotiation) -> [FieldSetting] {
        var settings: [FieldSetting] = []
        if normalisesAccept, isUnconfigured("accept", .accept) {
            var value: [UInt8] = []
            NegotiationNormaliser.appendAccept(negotiation, to: &value)
            settings.append(FieldSetting(.accept, "Accept", value))
        }
        if normalisesAcceptEncoding, isUnconfigured("accept-encoding", .acceptEncoding) {
            var value: [UInt8] = []
            NegotiationNormaliser.appendAcceptEncoding(negotiation, to: &value)
            settings.append(FieldSetting(.acceptEncoding, "Accept-Encoding", value))
        }
        return settings
    }

    private func isUnconfigured(_ name: StaticString, _ id: FieldName) -> Bool {
        !removed.contains(name) && !overriddenLines.contains { $0.id == id }
    }

    /// Returns true for fields without which the request would have another meaning or could not be
    /// read (RFC 9110 §8, §10.1, §13, §14; RFC 9111 §5.2).
    private static func isEssential(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        switch line.id {
        case .cacheControl, .contentDisposition, .contentEncoding, .contentLanguage,
            .contentRange, .contentType, .host, .ifMatch, .ifModifiedSince, .ifNoneMatch,
            .ifRange, .ifUnmodifiedSince, .pragma, .range, .via:
            return true
        case .other:
            let name = line.name.range
            let start = name.lowerBound
            if CDNLoop.isFieldName(bytes, at: name) { return true }
            // The fields of the WebSocket handshake (RFC 6455).
            if name.count > 14, bytes.matchesIgnoringCase("sec-websocket-", at: start..<start + 14)
            {
                return true
            }
            return name.count > 8
                && (bytes.matchesIgnoringCase("content-", at: start..<start + 8)
                    || bytes.matchesIgnoringCase("max-forwards", at: name)
                    || ForwardedField(bytes, at: name) != nil)
        default:
            return false
        }
    }
}

/// Request fields that origins are known to act on although they are in no cache key, so that one
/// client's values would end up in responses to others (cache poisoning).
///
/// They are not forwarded unless a site names them.
package enum UnkeyedFields {
    /// The names, in lower case and alphabetical order.
    ///
    /// Every name with `_` counts as well, because CGI and WSGI cannot tell it from the same name
    /// with `-`.
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

    /// Returns true if the name in `range` of `bytes` holds `_` or, in any case, is in ``names``.
    static func contains(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        for index in range where bytes[index] == UInt8(ascii: "_") { return true }
        return names.contains { bytes.matchesIgnoringCase($0, at: range) }
    }
}

/// The path of a request target as an origin may interpret it.
enum TargetPath {
    /// The number of times an escape may be decoded on the way to a file, by a framework and by a
    /// server before it.
    private static let decodingsMax = 3

    /// Returns true if `target` may lead above the directory it is relative to, after any number of
    /// decodings up to ``decodingsMax``.
    ///
    /// Dot segments count (RFC 3986 §5.2.4), also with parameters after a `;`, and `\` counts as a
    /// slash. Empty segments are ignored, because some servers collapse several slashes.
    static func escapesBase(_ target: [UInt8]) -> Bool {
        var path = Array(target.prefix { $0 != UInt8(ascii: "?") })
        if ascendsAboveRoot(path) { return true }
        for _ in 0..<decodingsMax where path.contains(UInt8(ascii: "%")) {
            path = PercentEncoding.decoded(path[...], isLenient: true) ?? path
            if ascendsAboveRoot(path) { return true }
        }
        return false
    }

    /// Returns true if `..` segments lead above the start of `path` at any point.
    private static func ascendsAboveRoot(_ path: [UInt8]) -> Bool {
        var depth = 0
        for segment in path.split(whereSeparator: { $0 == 0x2F || $0 == 0x5C }) {
            // Some servers end a name at a control character, or drop trailing spaces.
            let name = segment.prefix { $0 != UInt8(ascii: ";") && $0 > 0x20 && $0 != 0x7F }
            if name.elementsEqual("..".utf8) {
                depth -= 1
                if depth < 0 { return true }
            } else if !name.elementsEqual(".".utf8), !name.isEmpty {
                depth += 1
            }
        }
        return false
    }
}
