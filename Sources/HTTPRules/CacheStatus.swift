import Ground

/// How a response came about, for the field Cache-Status (RFC 9211).
package struct CacheStatus: Hashable, Sendable {
    package var outcome: Outcome
    /// Freshness left, in seconds; negative if the answer is stale (RFC 9211 §2.4).
    package var ttlSeconds: Int64?
    /// The status of the origin's answer (RFC 9211 §2.3).
    package var forwardStatus: UInt16?
    /// The answer was stored (RFC 9211 §2.5).
    package var isStored = false
    /// The request was joined with another one that was already on its way (RFC 9211 §2.6).
    package var isCollapsed = false
    /// Where the bytes came from (RFC 9211 §2.8).
    package var detail: Detail?

    package init(_ outcome: Outcome, ttlSeconds: Int64? = nil, detail: Detail? = nil) {
        self.outcome = outcome
        self.ttlSeconds = ttlSeconds
        self.detail = detail
    }

    /// Answered here, or forwarded and why (RFC 9211 §2.1, §2.2).
    package enum Outcome: Hashable, Sendable {
        case hit
        case forwarded(Forward)
        /// Neither: an error of our own.
        case none
    }

    /// Why a request went to the origin (RFC 9211 §2.2).
    package enum Forward: Hashable, Sendable {
        case bypass
        case method
        case uriMiss
        case varyMiss
        case miss
        case request
        case stale
        case partial
    }

    package enum Detail: Hashable, Sendable {
        case memory
        case disk
        case peer
        case origin
    }

    /// Appends the field's value, a list of one item (RFC 8941 §3.1); nothing is allocated if
    /// there is room.
    package func append(to bytes: inout [UInt8]) {
        switch outcome {
        case .hit: bytes.append(contentsOf: "nuthatch; hit".utf8)
        case .none: bytes.append(contentsOf: "nuthatch".utf8)
        case .forwarded(let forward):
            bytes.append(contentsOf: "nuthatch; fwd=".utf8)
            Self.append(forward, to: &bytes)
        }
        if let forwardStatus {
            bytes.append(contentsOf: "; fwd-status=".utf8)
            ASCII.append(UInt64(forwardStatus), to: &bytes)
        }
        if let ttlSeconds {
            bytes.append(contentsOf: "; ttl=".utf8)
            if ttlSeconds < 0 { bytes.append(UInt8(ascii: "-")) }
            // The greatest integer of structured fields has 15 digits (RFC 8941 §3.3.1).
            ASCII.append(min(ttlSeconds.magnitude, 999_999_999_999_999), to: &bytes)
        }
        if isStored { bytes.append(contentsOf: "; stored".utf8) }
        if isCollapsed { bytes.append(contentsOf: "; collapsed".utf8) }
        switch detail {
        case .memory: bytes.append(contentsOf: "; detail=memory".utf8)
        case .disk: bytes.append(contentsOf: "; detail=disk".utf8)
        case .peer: bytes.append(contentsOf: "; detail=peer".utf8)
        case .origin: bytes.append(contentsOf: "; detail=origin".utf8)
        case nil: break
        }
    }

    private static func append(_ forward: Forward, to bytes: inout [UInt8]) {
        switch forward {
        case .bypass: bytes.append(contentsOf: "bypass".utf8)
        case .method: bytes.append(contentsOf: "method".utf8)
        case .uriMiss: bytes.append(contentsOf: "uri-miss".utf8)
        case .varyMiss: bytes.append(contentsOf: "vary-miss".utf8)
        case .miss: bytes.append(contentsOf: "miss".utf8)
        case .request: bytes.append(contentsOf: "request".utf8)
        case .stale: bytes.append(contentsOf: "stale".utf8)
        case .partial: bytes.append(contentsOf: "partial".utf8)
        }
    }
}
