import Testing
import Wire

@Suite struct VersionTests {
    @Test("The linked libraries report their versions")
    func versions() {
        #expect(OpenSSLLibrary.version.hasPrefix("OpenSSL 3."))
        #expect(NGHTTP2Library.version.hasPrefix("nghttp2 1."))
    }
}
