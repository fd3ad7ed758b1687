import Foundation
import Glibc

/// What the kernel counts of a process on this machine, at one instant.
package struct ProcessStatistics: Sendable {
    /// Resident memory, files that it maps included, in bytes (VmRSS).
    package let residentBytes: Int
    /// The most resident memory it ever had, in bytes (VmHWM).
    package let residentBytesMax: Int
    /// Resident memory of its own, without files that it maps, in bytes (RssAnon).
    package let anonymousBytes: Int
    /// Open descriptors.
    package let descriptors: Int
    /// User and system time together.
    package let processorSeconds: Double

    /// There is no such process.
    package struct NotRunning: Error, CustomStringConvertible {
        let identifier: Int32
        package var description: String { "process \(identifier) is not there" }
    }

    /// Reads the figures.
    ///
    /// - Parameter identifier: A process's id; this one's without.
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
        // Behind the name, which may hold anything, and before it the identifier alone.
        let fields = stat.drop { $0 != ")" }.dropFirst(2).split(separator: " ")
        let ticks = [11, 12].compactMap { fields.count > $0 ? Double(fields[$0]) : nil }
        processorSeconds = ticks.reduce(0, +) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}
