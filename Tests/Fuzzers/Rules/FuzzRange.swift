import Ground
import HTTPRules

/// Values of Range: the first byte determines the size of the body, and the number of ranges
/// allowed.
///
/// Invariants: every range is within the body; of several none is adjacent to another, so that
/// together they are no longer than the body; the result, printed as a Range, is read as the same.
func fuzzRange(_ input: [UInt8]) {
    let size: UInt64 = input[0] & 15 == 15 ? .max : UInt64(input[0] & 15) * 7
    let countMax = Int(input[0] >> 4)
    let set = RangeSet.parse(
        input.span, at: 1..<input.count, size: size, countMax: countMax)
    switch set {
    case .whole, .unsatisfiable: break
    case .single(let range): check([range], size: size, is: set)
    case .multiple(let ranges):
        precondition(2...countMax ~= ranges.count)
        check(ranges, size: size, is: set)
    }
}

private func check(_ ranges: [ByteRange], size: UInt64, is set: RangeSet) {
    for range in ranges { precondition(range.first <= range.last && range.last < size) }
    let ascending = ranges.sorted { $0.first < $1.first }
    for (range, next) in zip(ascending, ascending.dropFirst()) {
        precondition(range.last + 1 < next.first)
    }
    let printed = ranges.map { "\($0.first)-\($0.last)" }.joined(separator: ",")
    let value = Array("bytes=\(printed)".utf8)
    precondition(
        RangeSet.parse(value.span, at: 0..<value.count, size: size, countMax: ranges.count) == set)
}
