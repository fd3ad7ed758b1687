import CNgHTTP2
import COpenSSL

/// The versions of the linked C libraries, as reported at run time.
package enum LibraryVersions {
    /// OpenSSL's version, such as `OpenSSL 3.0.19 27 Jan 2026`.
    package static var openSSL: String {
        guard let text = unsafe OpenSSL_version(OPENSSL_VERSION) else { return "OpenSSL" }
        return unsafe String(cString: text)
    }

    /// nghttp2's version, such as `nghttp2 1.52.0`.
    package static var ngHTTP2: String {
        guard let info = unsafe nghttp2_version(0), let text = unsafe info.pointee.version_str
        else { return "nghttp2" }
        return unsafe "nghttp2 " + String(cString: text)
    }
}

/// Process-wide configuration of OpenSSL.
package enum OpenSSLLibrary {
    /// Keeps OpenSSL from freeing its global state when the process exits; must be called before
    /// any other use of OpenSSL.
    ///
    /// The cleanup would run while other threads still release their objects, which then crashes
    /// them; the kernel reclaims all memory in any case.
    package static func disableExitCleanup() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
