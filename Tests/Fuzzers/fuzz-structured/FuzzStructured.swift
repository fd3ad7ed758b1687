import FuzzSupport
import Ground
import HTTPRules

/// A structured field of each of the three kinds.
///
/// Held: what was read can be written, is read as the same, and is then written as the same.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let start = unsafe start else { return 0 }
    let input = unsafe Array(UnsafeBufferPointer(start: start, count: count))
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
    return 0
}

/// The program's start.
@c(fuzz_structured_main)
public func start(_ count: CInt, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    unsafe runFuzzer(count, arguments, fuzz)
}
