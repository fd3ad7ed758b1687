extension RandomAccessCollection where Index == Int {
    /// How many elements come first; `isBefore` is true for those and for none after them.
    @inlinable
    package func partitionPoint(_ isBefore: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low - startIndex
    }

    /// Where `element` is among those that ascend; nil if it is not there.
    @inlinable
    package func sortedIndex(of element: Element) -> Int? where Element: Comparable {
        let place = startIndex + partitionPoint { $0 < element }
        return place < endIndex && self[place] == element ? place : nil
    }
}

extension RangeReplaceableCollection {
    /// All of it; nothing is left.
    @inlinable
    package mutating func takeAll() -> Self {
        defer { self = Self() }
        return self
    }
}
