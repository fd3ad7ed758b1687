package import Ground

/// What must not come back, or not unasked; see "Marks" in <doc:DiskFormat>.
package struct DiskMark: Hashable, Sendable {
    /// What is covered.
    package enum Target: Hashable, Sendable {
        case entry(EntryName)
        case url([UInt8])
        /// Host and path up to a segment's boundary.
        case prefix([UInt8])
        case host([UInt8])
        case tag([UInt8])
        case everything
    }

    package var target: Target
    /// True: entries stamped before are stale; false: they are dead.
    package var isSoft: Bool
    package var stamp: Stamp

    package init(_ target: Target, isSoft: Bool, stamp: Stamp) {
        self.target = target
        self.isSoft = isSoft
        self.stamp = stamp
    }
}
