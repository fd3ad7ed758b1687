/// A seeded pseudo-random generator (SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
///
/// The same seed gives the same sequence on every platform. Not for secrets: the shell draws hash
/// keys and process ids from the system's generator.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator whose sequence `seed` determines.
    package init(seed: UInt64) {
        state = seed
    }

    /// Returns the next 64 bits of the sequence.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
