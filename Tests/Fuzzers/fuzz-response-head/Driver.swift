/// libFuzzer's own entry, with the arguments of the program and the function to be fed.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutableRawPointer,
    _ target: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// The program's start: the build system links `main` to this name, so libFuzzer's `main` is not
/// linked.
@c(fuzz_response_head_main)
public func start(
    _ count: CInt, _ arguments: UnsafeMutableRawPointer?
) -> CInt {
    var count = count
    var arguments = unsafe arguments
    return unsafe runDriver(&count, &arguments, fuzz)
}
