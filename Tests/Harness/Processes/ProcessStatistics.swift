import Foundation
import Glibc

/// The kernel's statistics of a local process at one instant.
package struct ProcessStatistics: Sendable {
    /// Resident memory including mapped files, in bytes (VmRSS).
    package let residentBytes: Int
    /// Peak resident memory, in bytes (VmHWM).
    package let residentBytesMax: Int
    /// Anonymous resident memory, without mapped files, in bytes (RssAnon).
    package let anonymousBytes: Int
    /// Number of open descriptors.
    package let descriptors: Int
    /// User and system time together, in seconds.
    package let processorSeconds: Double

    /// The error for a process that does not exist.
    package struct NotRunning: Error, CustomStringConvertible {
        let identifier: Int32
        package var description: String { "process \(identifier) is not there" }
    }

    /// Reads the statistics.
    ///
    /// - Parameter identifier: A process id; this process by default.
    /// - Throws: `NotRunning`.
    package init(of identifier: Int32 = getpid()) throws {
        let folder = "/proc/\(identifier)"
        guard
            let status = try? String(contentsOfFile: "\(folder)/status", encoding: .utf8),
            let stat = try? String(contentsOfFile: "\(folder)/stat", encoding: .utf8),
            let open = try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/fd")
        else { throw NotRunning(identifier: identifier) }
        let lines = status.split(separator: "\n")
        func bytes(_ name: String) -> Int {
            let words = lines.first { $0.hasPrefix(name + ":") }?.split { " \t".contains($0) }
            return (words.flatMap { $0.count == 3 ? Int($0[1]) : nil } ?? 0) << 10
        }
        residentBytes = bytes("VmRSS")
        residentBytesMax = bytes("VmHWM")
        anonymousBytes = bytes("RssAnon")
        descriptors = open.count
        // After the name, which may contain anything; only the process id precedes it.
        let fields = stat.drop { $0 != ")" }.dropFirst(2).split(separator: " ")
        let ticks = [11, 12].compactMap { fields.count > $0 ? Double(fields[$0]) : nil }
        processorSeconds = ticks.reduce(0, +) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}
