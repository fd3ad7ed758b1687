package import Ground

/// What an operator adds to the rules by which stored answers are used.
package struct ReusePolicy: Hashable, Sendable {
    /// For how long after its freshness an answer stands in for an origin that fails.
    package var grace = Interval.zero
    /// The same while the node may lack a purge, counted from when its fence closed: so long may be
    /// given what is purged.
    package var fencedGrace = Interval.zero

    package init() {}
}
