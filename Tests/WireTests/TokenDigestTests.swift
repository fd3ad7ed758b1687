import HTTPRules
import Testing
import Wire

@Suite("Token digests")
struct TokenDigestTests {
    @Test("A token digest is its SHA-256 (FIPS 180-4)")
    func vector() {
        // SHA-256("abc")
        let expected: [UInt8] = [
            0xBA, 0x78, 0x16, 0xBF, 0x8F, 0x01, 0xCF, 0xEA, 0x41, 0x41, 0x40, 0xDE, 0x5D, 0xAE,
            0x22, 0x23, 0xB0, 0x03, 0x61, 0xA3, 0x96, 0x17, 0x7A, 0x9C, 0xB4, 0x10, 0xFF, 0x61,
            0xF2, 0x00, 0x15, 0xAD,
        ]
        #expect(TokenDigest(ofToken: Array("abc".utf8)) == TokenDigest(expected.span))
        #expect(TokenDigest(ofToken: Array("abd".utf8)) != TokenDigest(expected.span))
    }
}
