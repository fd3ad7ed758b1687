import Ground
import HTTPRules

/// Request targets, and before the first line feed the parameters that a site ignores, between
/// commas.
///
/// Invariants: without a change nothing is written; filtering is idempotent; the path stays; the
/// remaining parameters are those of the target, in order.
func fuzzQuery(_ input: [UInt8]) {
    let lineFeed = input.firstIndex(of: 10) ?? input.count
    let names = input[..<lineFeed].split(separator: UInt8(ascii: ",")).map {
        String(decoding: $0, as: UTF8.self)
    }
    let target = Array(input.dropFirst(lineFeed + 1))
    let filter = QueryFilter(ignoring: names)
    var once: [UInt8] = [1]
    guard filter.filter(target.span, at: 0..<target.count, into: &once) else {
        precondition(once == [1])
        return
    }
    precondition(once.count < target.count && once != target)
    var twice: [UInt8] = []
    precondition(!filter.filter(once.span, at: 0..<once.count, into: &twice))
    let kept = parameters(once)
    precondition(kept.path == parameters(target).path)
    var left = kept.query[...]
    for parameter in parameters(target).query where parameter == left.first { left.removeFirst() }
    precondition(left.isEmpty)
}

private func parameters(_ target: [UInt8]) -> (path: [UInt8], query: [[UInt8]]) {
    guard let mark = target.firstIndex(of: UInt8(ascii: "?")) else { return (target, []) }
    let query = target[(mark + 1)...].split(
        separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
    return (Array(target[..<mark]), query.map { Array($0) })
}
