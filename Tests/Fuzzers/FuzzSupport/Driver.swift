/// What libFuzzer calls with each input: its start and its length.
private typealias Feeding = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

/// libFuzzer's own entry, with the arguments of the program and the function to be called.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutableRawPointer,
    _ feeding: Feeding
) -> CInt

/// What is fed, and with how many bytes at least: set before the first input, on the same thread.
nonisolated(unsafe) private var target: ([UInt8]) -> Tombstone = { _ in }
nonisolated(unsafe) private var bytesMin = 0

/// Has this name for the sake of libFuzzer's `main`, which is linked, though nothing calls it.
@c(LLVMFuzzerTestOneInput)
public func feedTarget(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let start = unsafe start, unsafe count >= bytesMin else { return 0 }
    unsafe target(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// Runs libFuzzer from the start of a program, `<module>_main`, to which the build system links
/// `main`, and gives `body` each input that has so many bytes.
package func runFuzzer(
    _ count: CInt, _ arguments: UnsafeMutableRawPointer?, atLeast bytes: Int = 0,
    _ body: @escaping ([UInt8]) -> Tombstone
) -> CInt {
    unsafe bytesMin = bytes
    unsafe target = body
    var count = count
    var arguments = unsafe arguments
    return unsafe runDriver(&count, &arguments, feedTarget)
}

/// Reads an input whole, in two pieces, of which the first is `cut` of 255 parts, and byte by byte
/// if it is short: what is found, which is each time the same.
///
/// `read` reads up to each of the places that it is given.
@discardableResult
package func checkPieces<Transition: Equatable>(
    _ input: [UInt8], cut: UInt8, bytewiseBelow bytesMax: Int, read: ([Int]) -> Transition
) -> Transition {
    let whole = read([input.count])
    precondition(read([Int(cut) * input.count / 255, input.count]) == whole)
    if input.count < bytesMax { precondition(read(Array(0...input.count)) == whole) }
    return whole
}
