import Ground
import Testing

@Suite struct EntryDigestTests {
    @Test("A digest is the first 16 bytes of a SHA-256, in little-endian order")
    func digests() {
        let bytes = (0..<32).map { UInt8($0) }
        let digest = EntryDigest(bytes.span)
        let expected = EntryDigest(first: 0x0706_0504_0302_0100, second: 0x0F0E_0D0C_0B0A_0908)
        #expect(digest == expected)
    }
}
