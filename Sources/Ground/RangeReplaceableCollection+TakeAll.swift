extension RangeReplaceableCollection {
    /// All of it; nothing is left.
    package mutating func takeAll() -> Self {
        defer { self = Self() }
        return self
    }
}
