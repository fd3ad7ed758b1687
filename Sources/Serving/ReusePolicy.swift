package import Ground

/// What an operator adds to the rules by which stored answers are used.
package struct ReusePolicy: Hashable, Sendable {
    /// What requests say in Cache-Control and Pragma counts (RFC 9111 §5.2.1).
    package var honoursRequestControl = true
    /// For how long after its freshness an answer stands in for an origin that fails.
    package var grace = Interval.zero

    package init() {}
}
