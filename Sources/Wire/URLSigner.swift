package import HTTPRules

/// The keys of signed URLs, ready for use by any number of threads.
package final class URLSigner: Sendable {
    private let keys: [HMACKey]

    /// The first key signs; a signature of any is accepted.
    package init(_ keys: [SigningKey]) {
        precondition(!keys.isEmpty, "nothing to sign with")
        self.keys = keys.map { HMACKey($0.secret) }
    }

    /// What the first key makes of `text`, which is a ``SignatureBase``.
    package func sign(_ text: Span<UInt8>) -> Signature {
        keys[0].sign(text)
    }

    /// True if one of the keys makes this signature of `text`.
    ///
    /// How long it takes tells which key it was, if any, and nothing of the signature that would be
    /// right.
    package func accepts(_ signature: Signature, of text: Span<UInt8>) -> Bool {
        for key in keys where key.sign(text).isSame(as: signature) { return true }
        return false
    }
}
