package import Ground
package import Tiers

/// What a directory's journal has of what was invalidated.
package struct RecoveredMarks: Sendable {
    package var table: MarkTable
    /// The greatest stamp that the journal bears.
    package var reached: Stamp
    /// Why something may be missing; nil if nothing is.
    package var doubt: String?

    package init(table: MarkTable, reached: Stamp = .zero, doubt: String? = nil) {
        self.table = table
        self.reached = reached
        self.doubt = doubt
    }
}

/// Reads it, on a thread that may wait for the disk; `wanted` gives those of many marks that may
/// cover something in the directory.
package typealias MarksReader =
    @Sendable (
        any DiskVolume, NodeIdentity, _ wanted: ([Mark]) -> [Mark]
    ) -> RecoveredMarks
