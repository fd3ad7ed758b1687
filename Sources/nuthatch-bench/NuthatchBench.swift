import ArgumentParser
import Glibc

/// The program with the benchmarks.
@main
struct NuthatchBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nuthatch-bench",
        abstract: "Measures parts of a node, and tests whether it survives kills and churn.",
        discussion: "Whole servers are compared over sockets; this is for their parts.",
        subcommands: [
            HitCommand.self, MemoryCommand.self, DiskCommand.self, MarksCommand.self,
            KillCommand.self, PurgeCommand.self, StormCommand.self, ChurnCommand.self,
            TLSIdleCommand.self, HandshakesCommand.self, AttacksCommand.self,
        ])
}

/// A reason why a measurement cannot be made.
struct BenchError: Error, CustomStringConvertible {
    let description: String
}

/// Returns a monotonic time in nanoseconds.
func nanoseconds() -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Returns a value rounded to two decimals.
func hundredths(_ value: Double) -> Double { (value * 100).rounded() / 100 }

extension [Double] {
    /// The median, the greater of the two middle elements if their number is even.
    var median: Double { sorted()[count / 2] }
}
