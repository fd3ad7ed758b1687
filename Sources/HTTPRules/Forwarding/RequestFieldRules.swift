package import Ground

/// What a site's origin is told of a request.
///
/// Without settings: everything that is meant for it, unchanged, but ``UnkeyedFields``.
package struct RequestFieldRules: Hashable, Sendable {
    /// What the origin gets as Host (RFC 9110 §7.2).
    package enum HostRule: Hashable, Sendable {
        /// The origin's own authority.
        case origin
        /// What the client asked for.
        case client
        /// A value of the operator's.
        case fixed([UInt8])
    }

    /// What becomes of the fields that say who asked and how.
    package enum ForwardedRule: Hashable, Sendable {
        /// Nothing is added. The client's X-Forwarded-For is passed on as it is.
        case unchanged
        /// Who connected is added to the client's X-Forwarded-For. The rest is what this node saw.
        case added
        /// Only what this node saw.
        case replaced
    }

    /// Host and port of the origin.
    package var authority: [UInt8]
    /// What stands before the client's path, without a slash at its end.
    package let basePath: [UInt8]
    package var host = HostRule.origin
    /// X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host; and Forwarded (RFC 7239) where the
    /// client sent it.
    package var forwarded = ForwardedRule.added
    /// Fields that the origin does not get.
    package var removed = FieldNames()
    /// Fields that the origin gets as the client sent them, also of ``UnkeyedFields``.
    package var forwardedNames = FieldNames()
    /// The origin gets fields that are not ``named``, but none of ``UnkeyedFields``; otherwise only
    /// those without which the request would say something else.
    package var forwardsOthers = true
    /// Trailer fields go on, if these rules and ``TrailerFields`` let them.
    package var forwardsTrailers = false
    /// Lines that stand in place of the client's of the same name; each ``mayChange(_:)``.
    package var lines: [FieldSetting] = []
    /// Accept of GET and HEAD becomes one of a few values: see ``NegotiationNormaliser``.
    package var normalisesAccept = false
    /// Accept-Encoding of GET and HEAD becomes one coding: see ``NegotiationNormaliser``.
    package var normalisesAcceptEncoding = false
    /// The node names itself in Via (RFC 9110 §7.6.3).
    package var addsVia = true
    /// How many nodes of this name a request may have come through, as its Via or its CDN-Loop
    /// says: for loops in which every round asks for something else.
    package var hopsMax = 8

    /// - Parameters:
    ///   - authority: host and port of the origin.
    ///   - basePath: what stands before every path; a slash at its end is dropped.
    package init(authority: [UInt8], basePath: [UInt8] = []) {
        self.authority = authority
        self.basePath =
            basePath.last == UInt8(ascii: "/") ? Array(basePath.dropLast()) : basePath
    }

    /// True for a field that an operator may set or remove in requests.
    ///
    /// Not for what frames a message or is of one hop, and not for what is decided elsewhere: Host,
    /// Via, CDN-Loop, conditions, ranges.
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

    /// True if a client's end-to-end line goes on as it is.
    func forwards(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        let name = line.name.range
        if line.id == .accept, normalisesAccept { return false }
        if line.id == .acceptEncoding, normalisesAcceptEncoding { return false }
        if removed.contains(bytes, at: name) || self.lines.contains(bytes, at: name) {
            return false
        }
        if forwardedNames.contains(bytes, at: name) || Self.isEssential(line, in: bytes) {
            return true
        }
        return forwardsOthers && !UnkeyedFields.contains(bytes, at: name)
    }

    /// True if the origin is told what a client says in the field of this name, in lower case, just
    /// as it was said; of few fields this is known without looking at the request.
    package func forwardsUnchanged(_ name: [UInt8]) -> Bool {
        let isKnown: Bool
        switch FieldName(name.span, at: name.indices) {
        case .accept: isKnown = !normalisesAccept
        case .acceptEncoding: isKnown = !normalisesAcceptEncoding
        default: isKnown = name.elementsEqual("accept-language".utf8)
        }
        return isKnown && (forwardsOthers || forwardedNames.contains(name.span, at: name.indices))
            && !removed.contains(name.span, at: name.indices)
            && !lines.contains(name.span, at: name.indices)
    }

    /// The trailer section that goes on, of a request with these trailer fields (RFC 9110 §6.5.1).
    package func trailers(_ lines: [FieldLine], in bytes: Span<UInt8>) -> [UInt8] {
        guard forwardsTrailers else { return [] }
        return TrailerFields.section(lines.filter { forwards($0, in: bytes) }, in: bytes)
    }

    /// True if the operator decides about the field of `line` by name.
    package func isConfigured(_ line: FieldSetting) -> Bool {
        let name = line.name.span
        return removed.contains(name, at: line.name.indices)
            || lines.contains(name, at: line.name.indices)
    }

    /// The operator's lines, then what is left of Accept and Accept-Encoding unless the operator
    /// decides them.
    func operatorLines(_ lines: [FieldLine], in bytes: Span<UInt8>) -> [FieldSetting] {
        guard normalisesAccept || normalisesAcceptEncoding else { return self.lines }
        return self.lines + normalisedLines(NegotiationNormaliser(lines, in: bytes).negotiation)
    }

    /// What is left of Accept and Accept-Encoding, as far as the operator does not decide them.
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
        !removed.contains(name) && !lines.contains { $0.id == id }
    }

    /// True for fields without which the request would ask for something else, or could not be read
    /// (RFC 9110 §8, §10.1, §13, §14; RFC 9111 §5.2).
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
            // Of the handshake of RFC 6455.
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
