import Ground

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
    /// Parameters about a forwarded request are printed only if the request was forwarded.
    ///
    /// - Parameters:
    ///   - name: the name of this cache, a token (RFC 9211 §2).
    ///   - bytes: the buffer to append to.
    package func append(name: StaticString = "nuthatch", to bytes: inout [UInt8]) {
        bytes += name.description.utf8
        switch outcome {
        case .hit: bytes += "; hit".utf8
        case .generated: break
        case .forwarded(let reason):
            bytes += "; fwd=".utf8
            bytes += reason.rawValue.utf8
            if let forwardStatus {
                bytes += "; fwd-status=".utf8
                ASCII.append(UInt64(forwardStatus), to: &bytes)
            }
        }
        if let ttl {
            bytes += "; ttl=".utf8
            StructuredText.append(ttl, to: &bytes)
        }
        if case .forwarded = outcome {
            if isStored { bytes += "; stored".utf8 }
            if isCollapsed { bytes += "; collapsed".utf8 }
            if isFenced { bytes += "; fenced".utf8 }
        }
        if let key, key.count <= Self.keyBytesMax {
            bytes += "; key=".utf8
            // Escaping may turn each byte into three.
            StructuredText.append(string: key, bytesMax: 3 * Self.keyBytesMax, to: &bytes)
        }
        if let detail {
            bytes += "; detail=".utf8
            StructuredText.append(tokenOrString: detail, to: &bytes)
        }
    }
}
