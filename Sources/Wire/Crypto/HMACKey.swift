import COpenSSL
package import HTTPRules

/// A key for HMAC-SHA-256 (RFC 2104), with the part of the hash that is common to all texts
/// computed in advance.
///
/// A signature takes less than half the time of OpenSSL's own HMAC with a context that is kept and
/// copied (`EVP_MAC_CTX_dup`), which allocates four contexts per text; this allocates one.
@safe
package final class HMACKey: Sendable {
    /// Contexts that have hashed the key; they are only copied from, which several threads may do
    /// concurrently.
    private nonisolated(unsafe) let inner: OpaquePointer
    private nonisolated(unsafe) let outer: OpaquePointer

    private static let blockBytes = 64

    /// Creates a key from a secret of any length.
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

    /// Returns the authentication code of `text`.
    package func sign(_ text: Span<UInt8>) -> Signature {
        let context = unsafe Self.context()
        defer { unsafe EVP_MD_CTX_free(context) }
        let digest = unsafe Self.finish(context, from: inner, text)
        let code = unsafe Self.finish(context, from: outer, digest.span)
        return Signature(code.span)
    }

    /// Returns a new, empty context; terminates the process if there is no memory.
    private static func context() -> OpaquePointer {
        guard let context = unsafe EVP_MD_CTX_new() else {
            preconditionFailure("no memory for a hash")
        }
        return unsafe context
    }

    /// Returns a new context that has hashed one block.
    private static func context(of block: [UInt8]) -> OpaquePointer {
        let context = unsafe context()
        let isDone = unsafe block.withUnsafeBytes { raw in
            unsafe EVP_DigestInit_ex2(context, sha256Algorithm, nil) == 1
                && EVP_DigestUpdate(context, raw.baseAddress, raw.count) == 1
        }
        precondition(isDone, "no SHA-256")
        return unsafe context
    }

    /// Returns the hash of what `start` has hashed, followed by `text`; `context` is overwritten.
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
        // OpenSSL fails here only if it is out of memory.
        precondition(isDone, "no SHA-256")
        return digest
    }
}

/// Signs URLs and verifies their signatures; usable by any number of threads at once.
package final class URLSigner: Sendable {
    private let keys: [HMACKey]

    /// Creates a signer with a non-empty list of keys: the first one signs, all verify.
    package init(_ keys: [SigningKey]) {
        precondition(!keys.isEmpty, "nothing to sign with")
        self.keys = keys.map { HMACKey($0.secret) }
    }

    /// Returns the signature with the first key of a URL's text, as ``SignatureBase`` makes it.
    package func sign(_ text: Span<UInt8>) -> Signature {
        keys[0].sign(text)
    }

    /// Returns true if `signature` is valid for `text` with one of the keys.
    ///
    /// The duration depends on which key matches, if any, but not on the expected signature.
    package func accepts(_ signature: Signature, of text: Span<UInt8>) -> Bool {
        for key in keys where key.sign(text).isSame(as: signature) { return true }
        return false
    }
}
