import FuzzSupport
import Ground
import HTTPRules

/// A structured field of each of the three kinds.
///
/// Invariant: a parsed value can be written, is read as the same, and is then written as the same.
private func fuzz(_ input: [UInt8]) {
    if let item = StructuredItem(input.span) {
        var written: [UInt8] = []
        item.append(to: &written)
        let again = StructuredItem(written.span)
        precondition(again == item)
    }
    if let list = StructuredList(input.span) {
        var written: [UInt8] = []
        list.append(to: &written)
        let again = StructuredList(written.span)
        precondition(again == list)
    }
    if let dictionary = StructuredDictionary(input.span) {
        var written: [UInt8] = []
        dictionary.append(to: &written)
        let again = StructuredDictionary(written.span)
        precondition(again == dictionary)
    }
}

/// The program's start.
@c(fuzz_structured_main)
public func start(_ count: CInt, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    unsafe runFuzzer(count, arguments, fuzz)
}
