extension RangeReplaceableCollection {
    /// All of it; nothing is left.
    @inlinable
    package mutating func takeAll() -> Self {
        defer { self = Self() }
        return self
    }
}
