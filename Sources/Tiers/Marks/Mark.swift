package import Ground

/// What must not come back, or not unasked: entries that a target covers and that were asked for
/// before (DESIGN.md §7, "Stamps and marks").
package struct Mark: Hashable, Sendable {
    package var target: PurgeTarget
    /// True: entries stamped before are stale; false: they are dead.
    package var isSoft: Bool
    package var stamp: Stamp

    package init(_ target: PurgeTarget, isSoft: Bool, stamp: Stamp) {
        self.target = target
        self.isSoft = isSoft
        self.stamp = stamp
    }
}
