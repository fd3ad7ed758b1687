import Testing
import Wire

@Suite struct VersionTests {
    @Test("the linked libraries say who they are")
    func versions() {
        #expect(LibraryVersions.openSSL.hasPrefix("OpenSSL 3."))
        #expect(LibraryVersions.ngHTTP2.hasPrefix("nghttp2 1."))
    }
}
