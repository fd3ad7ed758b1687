import COpenSSL
package import HTTPRules

/// A key of HMAC-SHA-256 (RFC 2104), hashed as far as it is the same for every text.
///
/// Takes less than half the time of OpenSSL's own HMAC with a context that is kept and copied
/// (`EVP_MAC_CTX_dup`), which allocates four contexts for a text; here it is one.
@safe
package final class HMACKey: Sendable {
    /// Have taken in the key, and are only ever copied from, which threads may do at one time.
    private nonisolated(unsafe) let inner: OpaquePointer
    private nonisolated(unsafe) let outer: OpaquePointer

    private static let blockBytes = 64

    package init(_ secret: [UInt8]) {
        var key = secret.count > Self.blockBytes ? sha256(secret.span) : secret
        key += Array(repeating: 0, count: Self.blockBytes - key.count)
        unsafe inner = Self.context(of: key.map { $0 ^ 0x36 })
        unsafe outer = Self.context(of: key.map { $0 ^ 0x5C })
    }

    deinit {
        unsafe EVP_MD_CTX_free(inner)
        unsafe EVP_MD_CTX_free(outer)
    }

    /// The code of `text`.
    package func sign(_ text: Span<UInt8>) -> Signature {
        let context = unsafe Self.context()
        defer { unsafe EVP_MD_CTX_free(context) }
        let digest = unsafe Self.finish(context, from: inner, text)
        let code = unsafe Self.finish(context, from: outer, digest.span)
        return Signature(code.span)
    }

    private static func context() -> OpaquePointer {
        guard let context = unsafe EVP_MD_CTX_new() else {
            preconditionFailure("no memory for a hash")
        }
        return unsafe context
    }

    /// A context that has taken in one block.
    private static func context(of block: [UInt8]) -> OpaquePointer {
        let context = unsafe context()
        let isDone = unsafe block.withUnsafeBytes { raw in
            unsafe EVP_DigestInit_ex2(context, sha256Algorithm, nil) == 1
                && EVP_DigestUpdate(context, raw.baseAddress, raw.count) == 1
        }
        precondition(isDone, "no SHA-256")
        return unsafe context
    }

    /// The hash of what `start` has taken in and of `text` behind it; `context` is room for it.
    private static func finish(
        _ context: OpaquePointer, from start: OpaquePointer, _ text: Span<UInt8>
    ) -> InlineArray<32, UInt8> {
        var digest = InlineArray<32, UInt8>(repeating: 0)
        var room = digest.mutableSpan
        let isDone = unsafe room.withUnsafeMutableBufferPointer { room in
            unsafe text.withUnsafeBytes { raw in
                var written: UInt32 = 0
                return unsafe EVP_MD_CTX_copy_ex(context, start) == 1
                    && EVP_DigestUpdate(context, raw.baseAddress, raw.count) == 1
                    && EVP_DigestFinal_ex(context, room.baseAddress, &written) == 1
                    && Int(written) == Signature.bytesCount
            }
        }
        // It fails only for want of memory.
        precondition(isDone, "no SHA-256")
        return digest
    }
}

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
