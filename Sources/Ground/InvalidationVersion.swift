/// When, in the order of a node's invalidations, something was asked for or invalidated: the boot
/// epoch and how many invalidations had been applied in it (DESIGN.md §7).
@usableFromInline package struct InvalidationVersion: Hashable, Comparable, Sendable {
    /// 1 at the node's first start, one more at each further one.
    @usableFromInline package var epoch: UInt64
    /// Invalidations applied since the start.
    @usableFromInline package var count: UInt64

    @inlinable package init(epoch: UInt64, count: UInt64) {
        self.epoch = epoch
        self.count = count
    }

    /// Before everything.
    package static let zero = InvalidationVersion(epoch: 0, count: 0)
    /// After everything.
    package static let last = InvalidationVersion(epoch: .max, count: .max)

    @inlinable package static func < (left: InvalidationVersion, right: InvalidationVersion) -> Bool
    {
        left.epoch == right.epoch ? left.count < right.count : left.epoch < right.epoch
    }
}
