import Ground

/// By which rules the answers of each site are tagged with their originals; see "Originals" in
/// <doc:DiskFormat>.
package struct TagRuleFingerprints: Hashable, Sendable {
    /// By the hash of a site's name; sites without rules are not there.
    private var rules: [UInt64: UInt64] = [:]

    /// Of no site.
    package init() {}

    /// What the rules of the site of this name come to; nil if it has none, or that is not known.
    package subscript(site: String) -> UInt64? {
        get { rules[Self.hash(site)] }
        set { rules[Self.hash(site)] = newValue }
    }

    private static func hash(_ site: String) -> UInt64 {
        XXH64.hash(Array(site.utf8).span, seed: 0)
    }

    /// What this note and the other one say alike.
    package func intersection(_ other: TagRuleFingerprints) -> TagRuleFingerprints {
        var note = self
        note.rules = rules.filter { other.rules[$0.key] == $0.value }
        return note
    }

    private static let fixedBytes = 24
    private static let rowBytes = 16
    /// More sites than a node may have.
    private static let rowsMax = 4096

    /// Bytes of a file that need to be read.
    package static let bytesMax = fixedBytes + rowsMax * rowBytes

    /// The file.
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

    /// What a file that begins with these bytes says.
    ///
    /// - Throws: what is wrong with it.
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
