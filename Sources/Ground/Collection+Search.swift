extension RandomAccessCollection where Index == Int {
    /// Returns the number of leading elements for which `isBefore` is true, by binary search.
    ///
    /// `isBefore` must be false for every element after the first for which it is false.
    @inlinable
    package func partitionPoint(_ isBefore: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low - startIndex
    }

    /// Returns the index of `element` in a collection in ascending order, or `nil` if it is absent.
    @inlinable
    package func sortedIndex(of element: Element) -> Int? where Element: Comparable {
        let place = startIndex + partitionPoint { $0 < element }
        return place < endIndex && self[place] == element ? place : nil
    }
}

extension RangeReplaceableCollection {
    /// Returns the whole collection and leaves an empty one.
    @inlinable
    package mutating func takeAll() -> Self {
        defer { self = Self() }
        return self
    }
}
