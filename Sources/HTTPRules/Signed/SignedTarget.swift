package import Ground

/// What a request target says of its signature.
package enum SignedTargetParse: Hashable, Sendable {
    /// There is no parameter `signature`.
    case unsigned
    case signed(SignedTarget)
    /// There is one, but not as it has to be.
    case malformed(SignatureFault)
}

/// What is wrong with the parameters `expires` and `signature`, whatever they were made with.
package enum SignatureFault: Hashable, Sendable {
    /// Something stands behind the signature.
    case signatureNotLast
    case signatureDuplicated
    /// It is not 43 letters of base64url, or not the one spelling of what they mean.
    case signatureSyntax
    /// It does not stand right before the signature.
    case expiresMisplaced
    case expiresDuplicated
    /// It is no number of seconds.
    case expiresSyntax
}

/// A request target taken apart: what is asked for, until when, and the signature of both.
///
/// `TARGET?expires=SECONDS&signature=LETTERS`, with `&` in place of `?` where the target has a
/// query of its own. The two parameters are the last of the query, in this order, each once;
/// `expires` may be missing. So one target has one form, and what is signed is found without
/// copying.
package struct SignedTarget: Hashable, Sendable {
    /// Path and query without the two parameters and the delimiter before them.
    package var unsignedTarget: Extent
    /// The first second in which the URL is good no more; nil if it is good for ever.
    package var expiry: WallTime?
    package var signature: Signature

    package init(unsignedTarget: Extent, expiry: WallTime?, signature: Signature) {
        self.unsignedTarget = unsignedTarget
        self.expiry = expiry
        self.signature = signature
    }

    /// The last second that has a number here: the end of the year 9999.
    ///
    /// It refuses milliseconds, which clocks of browsers count.
    package static let expiryMax = WallTime(seconds: 253_402_300_799)

    private enum Name {
        case expires
        case signature
    }

    /// Reads the path and query in `range` of `bytes`, in one pass; extents are those of `bytes`.
    ///
    /// Names count as they are written: with an escape in it a name is another name.
    package static func parse(_ bytes: Span<UInt8>, at range: Range<Int>) -> SignedTargetParse {
        // A loop that runs to the span's own end needs no check of each byte's index.
        let target = bytes.extracting(range)
        var start = delimiter(target, from: 0, UInt8(ascii: "?")) + 1
        var expires: Range<Int>?
        var areExpiresDoubled = false
        var signature: Range<Int>?
        var fault: SignatureFault?
        while start <= target.count {
            let end = delimiter(target, from: start, UInt8(ascii: "&"))
            switch contains(target, at: start..<end) {
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

    /// Decimal digits of 1 to ``expiryMax``, without leading zeros, so that a time has one
    /// spelling.
    package static func time(_ bytes: Span<UInt8>, at range: Range<Int>) -> WallTime? {
        guard range.count <= 12, let first = range.first, bytes[first] != UInt8(ascii: "0"),
            let seconds = bytes.decimal(at: range), seconds <= UInt64(expiryMax.seconds)
        else { return nil }
        return WallTime(seconds: Int64(seconds))
    }

    /// The next `byte`, or the target's end.
    @inline(__always)
    private static func delimiter(_ target: Span<UInt8>, from start: Int, _ byte: UInt8) -> Int {
        var index = start
        while index < target.count, target[index] != byte { index &+= 1 }
        return index
    }

    /// Which of the two the parameter in `range` is, with or without a value.
    @inline(__always)
    private static func contains(_ target: Span<UInt8>, at range: Range<Int>) -> Name? {
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

    /// Where the value of a parameter lies; empty if it has none.
    private static func value(_ parameter: Range<Int>, of name: Name) -> Range<Int> {
        let count = name == .expires ? 8 : 10
        return min(parameter.lowerBound + count, parameter.upperBound)..<parameter.upperBound
    }
}

/// What a signature is good for.
package enum SignatureResult: Hashable, Sendable {
    /// The URL was signed with one of the keys and may be used; until then, or for ever.
    case valid(until: WallTime?)
    case refused(SignatureRefusal)
}

/// Why a request for what takes a signature is refused.
package enum SignatureRefusal: Hashable, Sendable {
    /// It has none.
    case unsigned
    /// Its parameters are not as they have to be.
    case malformed(SignatureFault)
    /// None of the keys makes this signature of what is asked for: one of them was changed, or the
    /// key is gone.
    case forged
    /// It was good until `at`.
    case expired(at: WallTime)
}

extension SignedTarget {
    /// Decides once the signature was compared with what the keys make; `now` is the wall clock.
    ///
    /// Who has no key learns nothing of times: what is forged is forged, whenever it would expire.
    package func result(isAuthentic: Bool, now: WallTime) -> SignatureResult {
        guard isAuthentic else { return .refused(.forged) }
        if let expiry, now >= expiry { return .refused(.expired(at: expiry)) }
        return .valid(until: expiry)
    }
}
