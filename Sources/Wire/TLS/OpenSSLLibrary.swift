import COpenSSL

/// What holds for OpenSSL in the whole process.
package enum OpenSSLLibrary {
    /// Keeps OpenSSL from giving up its memory when the process exits; to be called before anything
    /// else here is used.
    ///
    /// It would do so while other threads still let go of what is theirs, which then crashes them;
    /// the kernel takes everything back in any case.
    package static func disableExitCleanup() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
