import Ground
import RawStructuredFieldValues

/// One member of Cache-Status: how this cache handled a request (RFC 9211 §2).
///
/// A cache adds its member after those of the caches nearer to the origin, as one more line.
package struct CacheStatus: Hashable, Sendable {
    /// How the response was produced.
    package enum Outcome: Hashable, Sendable {
        /// The response came from the store; nothing was forwarded (RFC 9211 §2.1).
        case hit
        /// The request was forwarded towards the origin (RFC 9211 §2.2).
        case forwarded(Reason)
        /// This cache made the response itself, such as an error; it is neither a hit nor
        /// forwarded.
        case generated
    }

    /// Why a request was forwarded (RFC 9211 §2.2).
    package enum Reason: String, CaseIterable, Hashable, Sendable {
        /// The cache is configured not to handle the request.
        case bypass
        /// The method requires forwarding.
        case method
        /// Nothing was stored for the URI.
        case uriMiss = "uri-miss"
        /// A response is stored for the URI, but none that the request's fields select.
        case varyMiss = "vary-miss"
        /// No stored response satisfies the request; the cache does not know more.
        case miss
        /// The stored response is fresh, but a directive of the request forbids its use.
        case request
        /// The stored response was stale.
        case stale
        /// Only a part of the requested range is stored.
        case partial
    }

    /// How the response was produced.
    package var outcome: Outcome
    /// The status code of the forwarded request's response; `nil` if it equals the client's (RFC
    /// 9211 §2.3).
    package var forwardStatus: UInt16?
    /// The remaining freshness in seconds, negative if stale (RFC 9211 §2.4); `nil` if unknown.
    package var ttl: Int64?
    /// True if the response to the forwarded request was stored (RFC 9211 §2.5).
    package var isStored = false
    /// True if the request shared one forwarded request with others (RFC 9211 §2.6).
    package var isCollapsed = false
    /// True if the fence was closed: the node may lack an invalidation and served only what was
    /// validated recently.
    ///
    /// This is an extension parameter (RFC 9211 §2).
    package var isFenced = false
    /// The cache key of the response, for debugging (RFC 9211 §2.7); `nil` if unknown.
    ///
    /// A key longer than ``keyBytesMax`` is left out, because it repeats the client's target.
    package var key: [UInt8]?
    /// Further information for people, specific to this cache (RFC 9211 §2.8).
    package var detail: String?

    /// Creates a member with this outcome and no further parameters.
    package init(_ outcome: Outcome) {
        self.outcome = outcome
    }

    /// The maximum length of a printed key in bytes.
    package static let keyBytesMax = 200

    /// Appends the member: the value of one Cache-Status line.
    ///
    /// Parameters about a forwarded request are printed only if the request was forwarded. The
    /// space after each semicolon, as in the examples of RFC 9211, is why the values alone are
    /// written as structured fields.
    package func append(to bytes: inout [UInt8]) {
        bytes += "nuthatch".utf8
        switch outcome {
        case .hit: bytes += "; hit".utf8
        case .generated: break
        case .forwarded(let reason):
            bytes += "; fwd=\(reason.rawValue)".utf8
            if let forwardStatus { bytes += "; fwd-status=\(forwardStatus)".utf8 }
        }
        if let ttl {
            bytes += "; ttl=".utf8
            RFC9651BareItem.clamped(ttl).append(to: &bytes)
        }
        if case .forwarded = outcome {
            if isStored { bytes += "; stored".utf8 }
            if isCollapsed { bytes += "; collapsed".utf8 }
            if isFenced { bytes += "; fenced".utf8 }
        }
        if let key, key.count <= Self.keyBytesMax {
            bytes += "; key=".utf8
            RFC9651BareItem.visible(key).append(to: &bytes)
        }
        if let detail {
            bytes += "; detail=".utf8
            RFC9651BareItem.tokenOrVisible(detail).append(to: &bytes)
        }
    }
}

extension CacheStatus {
    /// Parses the last member of a Cache-Status field, that of the cache nearest to the client;
    /// `nil` if the field is empty or malformed, or the reason to forward is unknown.
    ///
    /// The name of the cache is ignored. A member with neither `fwd` nor `hit` counts as generated.
    ///
    /// - Parameter value: the value of the field.
    package init?(lastMemberOf value: [UInt8]) {
        var parser = StructuredFieldValueParser(value)
        guard case .item(let item)? = try? parser.parseListFieldValue().last else { return nil }
        let parameters = item.rfc9651Parameters
        if case .token(let name)? = parameters["fwd"] {
            guard let reason = Reason(rawValue: name) else { return nil }
            self.init(.forwarded(reason))
        } else {
            self.init(parameters["hit"] == .bool(true) ? .hit : .generated)
        }
        if case .integer(let status)? = parameters["fwd-status"] {
            forwardStatus = UInt16(exactly: status)
        }
        if case .integer(let seconds)? = parameters["ttl"] { ttl = seconds }
        isStored = parameters["stored"] == .bool(true)
        isCollapsed = parameters["collapsed"] == .bool(true)
        isFenced = parameters["fenced"] == .bool(true)
        if case .string(let text)? = parameters["key"] { key = Array(text.utf8) }
        switch parameters["detail"] {
        case .token(let text)?, .string(let text)?: detail = text
        default: break
        }
    }
}
