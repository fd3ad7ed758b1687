package import Ground

/// The result of parsing the signature parameters of a request target.
package enum SignedTargetParse: Hashable, Sendable {
    /// The target has no parameter `signature`.
    case unsigned
    case signed(SignedTarget)
    /// The target has a parameter `signature`, but is malformed.
    case malformed(SignatureFault)
}

/// The faults in the parameters `expires` and `signature` that need no key to detect.
package enum SignatureFault: Hashable, Sendable {
    /// A parameter follows the signature.
    case signatureNotLast
    case signatureDuplicated
    /// The signature is not 43 letters of base64url, or not the canonical spelling.
    case signatureSyntax
    /// The parameter `expires` is not directly before the signature.
    case expiresMisplaced
    case expiresDuplicated
    /// The parameter `expires` is not a valid number of seconds.
    case expiresSyntax
}

/// A parsed signed target: the requested target, its expiry, and the signature of both.
///
/// The form is `TARGET?expires=SECONDS&signature=LETTERS`, with `&` in place of `?` where the
/// target has a query of its own. The two parameters are the last of the query, in this order, each
/// once; `expires` is optional. One target therefore has one form, and the signed part is a slice
/// of it.
package struct SignedTarget: Hashable, Sendable {
    /// The path and query without the two parameters and the delimiter before them.
    package var unsignedTarget: Extent
    /// The first second in which the URL is no longer valid; `nil` if it never expires.
    package var expiry: WallTime?
    /// The signature that the request carries.
    package var signature: Signature

    /// Creates a signed target from its parts.
    package init(unsignedTarget: Extent, expiry: WallTime?, signature: Signature) {
        self.unsignedTarget = unsignedTarget
        self.expiry = expiry
        self.signature = signature
    }

    /// The maximum expiry: the end of the year 9999.
    ///
    /// The limit rejects times in milliseconds, as browsers count them.
    package static let expiryMax = WallTime(seconds: 253_402_300_799)

    private enum Name {
        case expires
        case signature
    }

    /// Parses the path and query in `range` in one pass; extents refer to `bytes`.
    ///
    /// Names are compared as written: a name with an escape is a different name.
    package static func parse(_ bytes: Span<UInt8>, at range: Range<Int>) -> SignedTargetParse {
        // The compiler drops bounds checks in a loop that runs to the span's own end.
        let target = bytes.extracting(range)
        var start = delimiter(target, from: 0, UInt8(ascii: "?")) + 1
        var expires: Range<Int>?
        var areExpiresDoubled = false
        var signature: Range<Int>?
        var fault: SignatureFault?
        while start <= target.count {
            let end = delimiter(target, from: start, UInt8(ascii: "&"))
            switch parameterName(target, at: start..<end) {
            case .signature:
                if signature != nil { return .malformed(.signatureDuplicated) }
                signature = start..<end
            case .expires:
                if expires != nil { areExpiresDoubled = true }
                expires = start..<end
                if signature != nil { fault = fault ?? .expiresMisplaced }
            case nil:
                if signature != nil { fault = fault ?? .signatureNotLast }
            }
            start = end + 1
        }
        guard let signature else { return .unsigned }
        if areExpiresDoubled { return .malformed(.expiresDuplicated) }
        if let fault { return .malformed(fault) }
        if let expires, expires.upperBound + 1 != signature.lowerBound {
            return .malformed(.expiresMisplaced)
        }
        return parse(
            target, expires: expires, signature: signature, base: range.lowerBound)
    }

    /// Parses the values of the two parameters; `base` is the offset of `target` in the bytes that
    /// extents refer to.
    private static func parse(
        _ target: Span<UInt8>, expires: Range<Int>?, signature: Range<Int>, base: Int
    ) -> SignedTargetParse {
        var expiry: WallTime?
        if let expires {
            guard let time = time(target, at: value(expires, of: .expires)) else {
                return .malformed(.expiresSyntax)
            }
            expiry = time
        }
        guard
            let signed = Signature(base64URL: target, at: value(signature, of: .signature))
        else { return .malformed(.signatureSyntax) }
        let end = (expires ?? signature).lowerBound - 1
        return .signed(
            SignedTarget(
                unsignedTarget: Extent(start: base, count: end), expiry: expiry, signature: signed))
    }

    /// Parses decimal digits of 1 to ``expiryMax``; `nil` for anything else.
    ///
    /// Leading zeros are rejected, so that each time has one spelling.
    package static func time(_ bytes: Span<UInt8>, at range: Range<Int>) -> WallTime? {
        guard range.count <= 12, let first = range.first, bytes[first] != UInt8(ascii: "0"),
            let seconds = bytes.decimal(at: range), seconds <= UInt64(expiryMax.seconds)
        else { return nil }
        return WallTime(seconds: Int64(seconds))
    }

    /// Returns the offset of the next `byte`, or the end of the target.
    @inline(__always)
    private static func delimiter(_ target: Span<UInt8>, from start: Int, _ byte: UInt8) -> Int {
        var index = start
        while index < target.count, target[index] != byte { index &+= 1 }
        return index
    }

    /// Returns which of the two names the parameter in `range` has, with or without a value; `nil`
    /// for others.
    @inline(__always)
    private static func parameterName(_ target: Span<UInt8>, at range: Range<Int>) -> Name? {
        guard let first = range.first else { return nil }
        switch target[first] {
        case UInt8(ascii: "e"): return isNamed("expires", target, at: range) ? .expires : nil
        case UInt8(ascii: "s"): return isNamed("signature", target, at: range) ? .signature : nil
        default: return nil
        }
    }

    private static func isNamed(
        _ name: String, _ target: Span<UInt8>, at range: Range<Int>
    ) -> Bool {
        let end = range.lowerBound + name.utf8.count
        guard end <= range.upperBound, target.matches(name, at: range.lowerBound..<end) else {
            return false
        }
        return end == range.upperBound || target[end] == UInt8(ascii: "=")
    }

    /// Returns the range of a parameter's value; empty if it has none.
    private static func value(_ parameter: Range<Int>, of name: Name) -> Range<Int> {
        let count = name == .expires ? 8 : 10
        return min(parameter.lowerBound + count, parameter.upperBound)..<parameter.upperBound
    }
}

/// The result of checking the signature of a request's URL.
package enum SignatureResult: Hashable, Sendable {
    /// The URL was signed with one of the keys and is valid until this time; `nil` if it never
    /// expires.
    case valid(until: WallTime?)
    case refused(SignatureRefusal)
}

/// The reasons why a request that requires a signature is refused.
package enum SignatureRefusal: Hashable, Sendable {
    /// The request has no signature.
    case unsigned
    /// The parameters are malformed.
    case malformed(SignatureFault)
    /// No key produces this signature: the URL or expiry was changed, or the key was removed.
    case forged
    /// The signature was valid until `at`.
    case expired(at: WallTime)
}

extension SignedTarget {
    /// Returns the result of the comparison with the keys.
    ///
    /// A forged signature is reported as such even if it has also expired, so that a client without
    /// a key learns nothing about times.
    ///
    /// - Parameters:
    ///   - isAuthentic: true if one of the keys produces the signature.
    ///   - now: the wall-clock time.
    /// - Returns: `.valid` with the expiry time, or `.refused` if the signature is forged or has
    ///   expired.
    package func result(isAuthentic: Bool, now: WallTime) -> SignatureResult {
        guard isAuthentic else { return .refused(.forged) }
        if let expiry, now >= expiry { return .refused(.expired(at: expiry)) }
        return .valid(until: expiry)
    }
}
