/// What the status of an answer means to a cache.
package enum StatusRules {
    /// A lifetime may be guessed (RFC 9110 §15.1); 206, which is never stored as an answer, is left
    /// out.
    package static func isHeuristicallyCacheable(_ status: UInt16) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// RFC 9110 §15 says what the status means, and it asks nothing of caches that is not done
    /// here (RFC 9111 §3, §5.2.2.3).
    package static func isUnderstood(_ status: UInt16) -> Bool {
        switch status {
        case 200...205, 300...303, 305, 307, 308: true
        case 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    /// The status answers to fields of the request that select no answer: preconditions and Range
    /// (RFC 9110 §15.5.13, §15.5.17).
    package static func isRequestSpecific(_ status: UInt16) -> Bool {
        status == 412 || status == 416
    }

    /// The status says nothing of what there is: the server failed, or was not ready for this
    /// request (RFC 9110 §15.5.9 and §15.6, RFC 8470 §5.2, RFC 6585 §4).
    package static func isTransient(_ status: UInt16) -> Bool {
        status >= 500 || status == 408 || status == 425 || status == 429
    }

    /// The origin's failure: a stored answer may be given instead, if it may be used stale (RFC
    /// 5861 §4).
    package static func isFailure(_ status: UInt16) -> Bool {
        switch status {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}
