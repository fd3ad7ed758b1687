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
