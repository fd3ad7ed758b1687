import Fuzzers

/// The function that libFuzzer calls with each input: its start and its length.
private typealias Feed = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

/// The entry point of libFuzzer, with the program's arguments and the function to call.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutableRawPointer, _ feed: Feed
) -> CInt

/// The target, set before the first input on the same thread.
nonisolated(unsafe) private var target: FuzzTarget?

/// Feeds one input.
///
/// The name is required by libFuzzer's `main`, which is linked, though never called.
@c(LLVMFuzzerTestOneInput)
public func feedTarget(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe target?.run(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// The program's start, to which the build system links `main`.
///
/// The first argument is the name of the target, the others are libFuzzer's. Without arguments it
/// prints the names of all targets.
@c(fuzz_main)
public func start(
    _ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
) -> CInt {
    guard count > 1, let name = unsafe arguments[1] else {
        for target in FuzzTarget.all { print(target.name) }
        return 0
    }
    unsafe target = FuzzTarget.all.first { unsafe $0.name == String(cString: name) }
    guard unsafe target != nil else { return 2 }
    unsafe arguments[1] = arguments[0]
    var rest = unsafe UnsafeMutableRawPointer(arguments + 1)
    var restCount = count - 1
    return unsafe runDriver(&restCount, &rest, feedTarget)
}
