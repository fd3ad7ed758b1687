/// What a fuzzer feeds with one input: its start and its length.
package typealias FuzzTarget = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

/// libFuzzer's own entry, with the arguments of the program and the function to be fed.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutableRawPointer,
    _ target: FuzzTarget
) -> CInt

/// Runs libFuzzer from the start of a program, `<module>_main`: the build system links `main` to
/// this name, so libFuzzer's `main` is not linked.
package func runFuzzer(
    _ count: CInt, _ arguments: UnsafeMutableRawPointer?, _ target: FuzzTarget
) -> CInt {
    var count = count
    var arguments = unsafe arguments
    return unsafe runDriver(&count, &arguments, target)
}
