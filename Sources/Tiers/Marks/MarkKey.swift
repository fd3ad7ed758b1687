import Ground

/// The secret by which a node's marks are hashed: whoever does not know it cannot choose URLs or
/// tags that a mark of others covers.
///
/// Drawn once, and kept with the marks, for of what they cover nothing else is known.
package struct MarkHashKey: Hashable, Sendable {
    package let first: UInt64
    package let second: UInt64

    package init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second
    }

    /// One that everybody knows, where nobody chooses names to do harm: in simulations and
    /// measurements.
    package static let publiclyKnown = MarkHashKey(first: 0, second: 0)

    var hash: KeyedHash { KeyedHash(key0: first, key1: second) }
}
