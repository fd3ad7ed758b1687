import Ground

/// The fingerprints of the rules by which each site's responses are tagged with their originals;
/// see "Originals" in <doc:DiskFormat>.
package struct TagRuleFingerprints: Hashable, Sendable {
    /// The rules' fingerprints by the hash of the site's name, only of sites that have rules.
    private var rules: [UInt64: UInt64] = [:]

    /// Creates an empty table.
    package init() {}

    /// The fingerprint of a site's rules; `nil` if the site has no rules or is not in the table.
    package subscript(site: String) -> UInt64? {
        get { rules[Self.hash(site)] }
        set { rules[Self.hash(site)] = newValue }
    }

    private static func hash(_ site: String) -> UInt64 {
        XXH64.hash(Array(site.utf8).span, seed: 0)
    }

    /// Returns a table of the sites whose fingerprints are equal in both tables.
    package func intersection(_ other: TagRuleFingerprints) -> TagRuleFingerprints {
        var note = self
        note.rules = rules.filter { other.rules[$0.key] == $0.value }
        return note
    }

    private static let fixedBytes = 24
    private static let rowBytes = 16
    /// More rows than the number of sites that a node may have.
    private static let rowsMax = 4096

    /// The maximum number of bytes of a file that need to be read.
    package static let bytesMax = fixedBytes + rowsMax * rowBytes

    /// The encoded file.
    package var bytes: [UInt8] {
        var bytes = Array("NUTHORIG".utf8)
        bytes.appendFormatVersion(UInt32(rules.count))
        bytes.appendLittle(UInt64(0))
        for (site, fingerprint) in rules.sorted(by: { $0.key < $1.key }) {
            bytes.appendLittle(site)
            bytes.appendLittle(fingerprint)
        }
        bytes.writeChecksum(at: 16, from: Self.fixedBytes, seed: UInt64(rules.count))
        return bytes
    }

    /// Decodes a file that begins with these bytes.
    ///
    /// - Throws: the reason if the file is invalid.
    package init(_ bytes: Span<UInt8>) throws(DiskFormatError) {
        try bytes.checkMagic("NUTHORIG", count: Self.fixedBytes)
        let count = Int(bytes.little32(at: 12))
        let end = Self.fixedBytes + count * Self.rowBytes
        guard count <= Self.rowsMax, end <= bytes.count else { throw .truncated }
        let sum = bytes.checksum(Self.fixedBytes..<end, seed: UInt64(count))
        guard bytes.little64(at: 16) == sum else { throw .checksumMismatch }
        for start in stride(from: Self.fixedBytes, to: end, by: Self.rowBytes) {
            rules[bytes.little64(at: start)] = bytes.little64(at: start + 8)
        }
    }
}
