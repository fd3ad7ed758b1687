import Ground

/// Names one run of one node: 128 random bits drawn at each start, so that it is never used again.
///
/// Of two processes with one node id the newer wins; invalidations are numbered per process id.
package struct ProcessID: Hashable, Sendable, CustomStringConvertible {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Draws an id; `dice` is the system's generator in a node and a seeded one in a simulation.
    package init(using dice: inout some RandomNumberGenerator) {
        high = dice.next()
        low = dice.next()
    }

    /// 32 lower-case hexadecimal digits.
    package var description: String {
        hexadecimal(high) + hexadecimal(low)
    }
}
