package import Ground

/// Which of several stored answers that all match a request is used (RFC 9111 §4.1).
package struct VariantSelection: Hashable, Sendable {
    /// The number that ``add(number:date:hasVary:)`` was given with the answer to be used; nil
    /// before the first.
    package private(set) var index: Int?
    private var date = WallTime(seconds: .min)
    private var hasVary = false

    package init() {}

    /// Adds an answer: its Date, and whether it has a Vary that names a field.
    ///
    /// The most recent one wins, but one without Vary only over its like; of two of one second the
    /// one that was added first.
    package mutating func add(index: Int, date: WallTime, hasVary: Bool) {
        let isBetter = hasVary == self.hasVary ? date > self.date : hasVary
        guard self.index == nil || isBetter else { return }
        self.index = index
        self.date = date
        self.hasVary = hasVary
    }
}
