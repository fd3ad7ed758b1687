package import Tiers

/// The file in a node's directory that says by which rules answers are tagged with their originals.
///
/// Used by one thread at a time.
package struct TagRuleFile {
    private let volume: any DiskVolume

    private static let name = "originals"

    package init(_ volume: any DiskVolume) {
        self.volume = volume
    }

    /// What it says; nothing of any site if it is not there or damaged.
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

    /// Returns when nothing but this note can be read any more, or none.
    ///
    /// It is written in place: half of it does not check.
    package func write(_ note: TagRuleFingerprints) throws(DiskFile.Failure) {
        do throws(DiskFile.Failure) {
            let file = try volume.open(Self.name, creates: true)
            try file.write(note.bytes.span, at: 0)
            try file.sync()
            try volume.sync()
        } catch {
            // What it said before may be true no longer.
            try? volume.remove(Self.name)
            throw error
        }
    }
}
