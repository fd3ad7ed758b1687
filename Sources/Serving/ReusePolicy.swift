package import Ground

/// What an operator adds to the rules by which stored answers are used.
package struct ReusePolicy: Hashable, Sendable {
    /// For how long after its freshness an answer stands in for an origin that fails.
    package var grace = Interval.zero

    package init() {}
}
