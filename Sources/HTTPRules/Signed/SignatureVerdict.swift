package import Ground

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
