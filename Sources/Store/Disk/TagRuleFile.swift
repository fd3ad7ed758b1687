package import Tiers

/// The file in a node's directory that stores the fingerprints of the rules by which responses are
/// tagged with their originals.
///
/// Used by one thread at a time.
package struct TagRuleFile {
    private let volume: any DiskVolume

    private static let name = "originals"

    /// Creates access to the file in `volume`.
    package init(_ volume: any DiskVolume) {
        self.volume = volume
    }

    /// Returns the stored fingerprints; empty if the file is missing or damaged.
    package func read() throws(DiskFile.Failure) -> TagRuleFingerprints {
        do throws(DiskFile.Failure) {
            let file = try volume.open(Self.name, creates: false)
            let bytes = try file.read(TagRuleFingerprints.bytesMax, at: 0)
            return (try? TagRuleFingerprints(bytes.span)) ?? TagRuleFingerprints()
        } catch {
            guard error.isMissing else { throw error }
            return TagRuleFingerprints()
        }
    }

    /// Writes the fingerprints; returns once the file contains them, or throws after removing it.
    ///
    /// The file is written in place: a partial write fails its checksum.
    package func write(_ note: TagRuleFingerprints) throws(DiskFile.Failure) {
        do throws(DiskFile.Failure) {
            let file = try volume.open(Self.name, creates: true)
            try file.write(note.bytes.span, at: 0)
            try file.sync()
            try volume.sync()
        } catch {
            // The previous contents may be outdated.
            try? volume.remove(Self.name)
            throw error
        }
    }
}
