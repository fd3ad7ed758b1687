/// The function that libFuzzer calls with each input: its start and its length.
private typealias Feeding = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

/// The entry point of libFuzzer, with the program's arguments and the function to call.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutableRawPointer,
    _ feeding: Feeding
) -> CInt

/// The function under test and its minimum input length, set before the first input on the same
/// thread.
nonisolated(unsafe) private var target: ([UInt8]) -> Void = { _ in }
nonisolated(unsafe) private var bytesMin = 0

/// Feeds one input.
///
/// The name is required by libFuzzer's `main`, which is linked, though never called.
@c(LLVMFuzzerTestOneInput)
public func feedTarget(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let start = unsafe start, unsafe count >= bytesMin else { return 0 }
    unsafe target(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// Runs libFuzzer from the start of a program, `<module>_main`, to which the build system links
/// `main`, and passes to `body` each input of at least `bytes` bytes.
package func runFuzzer(
    _ count: CInt, _ arguments: UnsafeMutableRawPointer?, atLeast bytes: Int = 0,
    _ body: @escaping ([UInt8]) -> Void
) -> CInt {
    unsafe bytesMin = bytes
    unsafe target = body
    var count = count
    var arguments = unsafe arguments
    return unsafe runDriver(&count, &arguments, feedTarget)
}

/// Reads an input whole, in two pieces, of which the first is `cut` of 255 parts, and byte by byte
/// if it is short; the results must be equal.
///
/// `read` reads up to each of the given offsets.
@discardableResult
package func checkPieces<Outcome: Equatable>(
    _ input: [UInt8], cut: UInt8, bytewiseBelow bytesMax: Int, read: ([Int]) -> Outcome
) -> Outcome {
    let whole = read([input.count])
    precondition(read([Int(cut) * input.count / 255, input.count]) == whole)
    if input.count < bytesMax { precondition(read(Array(0...input.count)) == whole) }
    return whole
}
