import Testing
import Wire

@Suite struct VersionTests {
    @Test("The linked libraries report their versions")
    func versions() {
        #expect(LibraryVersions.openSSL.hasPrefix("OpenSSL 3."))
        #expect(LibraryVersions.ngHTTP2.hasPrefix("nghttp2 1."))
    }
}
