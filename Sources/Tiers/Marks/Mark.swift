package import Ground

/// What must not come back, or not unasked: entries that a target covers and that were asked for
/// before (DESIGN.md §7, "Stamps and marks").
package struct InvalidationMark: Hashable, Sendable {
    package var target: PurgeTarget
    /// True: entries stamped before are stale; false: they are dead.
    package var isSoft: Bool
    package var version: InvalidationVersion

    package init(_ target: PurgeTarget, isSoft: Bool, version: InvalidationVersion) {
        self.target = target
        self.isSoft = isSoft
        self.version = version
    }
}
