package import Ground
package import Tiers

/// What a directory's journal has of what was invalidated.
package struct RecoveredMarks: Sendable {
    package var table: MarkTable
    /// The greatest stamp that the journal bears.
    package var lastVersion: InvalidationVersion
    /// Why something may be missing; nil if nothing is.
    package var incompleteReason: String?

    package init(
        table: MarkTable, lastVersion: InvalidationVersion = .zero, incompleteReason: String? = nil
    ) {
        self.table = table
        self.lastVersion = lastVersion
        self.incompleteReason = incompleteReason
    }
}

/// Reads it, on a thread that may wait for the disk; `wanted` gives those of many marks that may
/// cover something in the directory.
package typealias MarkRecovery =
    @Sendable (
        any DiskVolume, NodeIdentity, _ wanted: ([InvalidationMark]) -> [InvalidationMark]
    ) -> RecoveredMarks
