extension RandomAccessCollection where Index == Int {
    /// How many elements come first; `isBefore` is true for those and for none after them.
    func sortedCount(_ isBefore: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low - startIndex
    }
}
