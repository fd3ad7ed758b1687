import Ground

/// What this cache did for a request, as a member of Cache-Status (RFC 9211 §2).
///
/// A cache adds its member behind those of the caches nearer to the origin: one more line.
package struct CacheStatus: Hashable, Sendable {
    package enum Outcome: Hashable, Sendable {
        /// Answered from the store, nothing forwarded (RFC 9211 §2.1).
        case hit
        /// Sent towards the origin (RFC 9211 §2.2).
        case forwarded(Reason)
        /// Neither: this cache made the answer itself, such as a refusal.
        case generated
    }

    /// Why a request went on (RFC 9211 §2.2).
    package enum Reason: String, CaseIterable, Hashable, Sendable {
        /// Configured not to handle the request.
        case bypass
        /// The method has to be forwarded.
        case method
        /// Nothing was stored for the URI.
        case uriMiss = "uri-miss"
        /// Something was stored for the URI, but nothing that the request's fields select.
        case varyMiss = "vary-miss"
        /// Nothing stored answers it, and no more is known.
        case miss
        /// What is stored is fresh, but the request does not want it.
        case request
        /// What is stored was stale.
        case stale
        /// A part of the representation is stored, but not all that was asked for.
        case partial
    }

    package var outcome: Outcome
    /// The status code of the answer to the forwarded request, if it is not the client's (RFC 9211
    /// §2.3).
    package var forwardStatus: UInt16?
    /// Seconds of freshness left, negative if stale (RFC 9211 §2.4).
    package var ttl: Int64?
    /// The answer to the forwarded request was stored (RFC 9211 §2.5).
    package var isStored = false
    /// The request was answered together with others by one forwarded (RFC 9211 §2.6).
    package var isCollapsed = false
    /// The node may lack an invalidation, and used nothing that was not validated of late: a
    /// parameter of its own (RFC 9211 §2).
    package var isFenced = false
    /// What the answer is stored under; of use for debugging (RFC 9211 §2.7), and left out if it is
    /// long: it repeats the client's target.
    package var key: [UInt8]?
    /// More that is of no other cache's concern (RFC 9211 §2.8).
    package var detail: String?

    package init(_ outcome: Outcome) {
        self.outcome = outcome
    }

    /// Bytes of a key that is printed.
    package static let keyBytesMax = 200

    /// Appends the member, `name` first: the value of one line of Cache-Status.
    ///
    /// Parameters that tell of a forwarded request are printed of one only.
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
            // Each byte may become three.
            StructuredText.append(string: key, bytesMax: 3 * Self.keyBytesMax, to: &bytes)
        }
        if let detail {
            bytes += "; detail=".utf8
            StructuredText.append(tokenOrString: detail, to: &bytes)
        }
    }
}
