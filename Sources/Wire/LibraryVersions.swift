import CNgHTTP2
import COpenSSL

/// The versions of the C libraries that are linked, as they call themselves at run time.
package enum LibraryVersions {
    /// Like `OpenSSL 3.0.19 27 Jan 2026`.
    package static var openSSL: String {
        guard let text = unsafe OpenSSL_version(OPENSSL_VERSION) else { return "OpenSSL" }
        return unsafe String(cString: text)
    }

    /// Like `nghttp2 1.52.0`.
    package static var ngHTTP2: String {
        guard let info = unsafe nghttp2_version(0), let text = unsafe info.pointee.version_str
        else { return "nghttp2" }
        return unsafe "nghttp2 " + String(cString: text)
    }
}

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
