/// A position in the order of a node's invalidations: the boot epoch, and the number of
/// invalidations applied in it (Design, "Versions and marks").
///
/// Fetches and marks carry one, so that a response can be compared with later invalidations.
@usableFromInline package struct InvalidationVersion: Hashable, Comparable, Sendable {
    /// The number of this start of the node, from 1.
    @usableFromInline package var epoch: UInt64
    /// Invalidations applied since this start.
    @usableFromInline package var count: UInt64

    /// Creates a version from its parts.
    @inlinable package init(epoch: UInt64, count: UInt64) {
        self.epoch = epoch
        self.count = count
    }

    /// The least version, before every invalidation.
    package static let zero = InvalidationVersion(epoch: 0, count: 0)
    /// The greatest version, after every invalidation.
    package static let last = InvalidationVersion(epoch: .max, count: .max)

    /// True if `left` precedes `right`: by epoch, then by count.
    @inlinable package static func < (left: InvalidationVersion, right: InvalidationVersion) -> Bool
    {
        left.epoch == right.epoch ? left.count < right.count : left.epoch < right.epoch
    }
}
