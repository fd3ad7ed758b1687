package import Ground

/// Puts together what a start has found in the segments of a log: which record of an entry counts,
/// and what the ledger takes over.
///
/// Segments are taken in the order of their sequence, records in the order in which they were
/// written, and the later one of an entry counts. What was not asked for within the age limit is
/// not taken over; what marks have killed is found when it is read.
package struct LogRecovery: Sendable {
    private let leastAccess: UInt32

    /// What was last asked for before the second `leastAccess` is not taken over.
    package init(leastAccess: UInt32) {
        self.leastAccess = leastAccess
    }

    /// Gives `body` what of a segment at `index` is taken over, in order; each in the place of what
    /// was given for the same digest before.
    ///
    /// `newestAccess` is the second at which the log was last written to, as far as is known: what
    /// was not checkpointed is given the benefit of the doubt.
    package func recover(
        _ segment: SegmentRecovery.RecoveredSegment, at index: UInt16, newestAccess: UInt32,
        _ body: (EntryDigest, DiskEntry) -> Void
    ) {
        let flags: DiskEntry.Flags =
            segment.header.queue == SegmentQueue.main.rawValue ? .inMain : []
        for found in segment.entries {
            let access =
                segment.needsFooter ? max(found.lastAccess, newestAccess) : found.lastAccess
            guard access >= leastAccess else { continue }
            body(
                found.digest,
                DiskEntry(
                    location: DiskLocation(segment: index, offsetUnits: found.offsetUnits),
                    lengthUnits: found.units, lastAccess: access,
                    accessCount: UInt8(min(found.accessCount, UInt16(UInt8.max))), flags: flags,
                    share: found.share))
        }
    }
}
