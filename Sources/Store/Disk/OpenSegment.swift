import Tiers

/// A segment that takes records.
///
/// An object, so that nothing copies its entries.
final class OpenSegment {
    let id: SegmentID
    let header: SegmentHeader
    let file: any VolumeFile
    /// In the order in which they were written.
    var entries: [SegmentFooter.Entry] = []
    var recordsEnd = UInt64(DiskFormat.headerBytes)

    init(id: SegmentID, header: SegmentHeader, file: any VolumeFile) {
        self.id = id
        self.header = header
        self.file = file
    }
}
