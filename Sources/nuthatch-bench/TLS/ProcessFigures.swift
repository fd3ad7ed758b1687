import Foundation
import Glibc

/// What the kernel counts of another process.
struct ProcessFigures {
    /// Memory of its own, without the files that it maps.
    let memoryBytes: Int
    let descriptors: Int
    /// User and system time, in seconds.
    let processorSeconds: Double

    struct Gone: Error, CustomStringConvertible {
        let identifier: Int32
        var description: String { "process \(identifier) is not there" }
    }

    init(of identifier: Int32) throws {
        let folder = "/proc/\(identifier)"
        guard
            let status = try? String(contentsOfFile: "\(folder)/status", encoding: .utf8),
            let stat = try? String(contentsOfFile: "\(folder)/stat", encoding: .utf8),
            let open = try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/fd")
        else { throw Gone(identifier: identifier) }
        let anonymous = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") } ?? ""
        memoryBytes =
            (anonymous.split(separator: " ").dropLast().last.flatMap { Int($0) } ?? 0) << 10
        descriptors = open.count
        // Behind the name, which may hold anything, and before it the identifier alone.
        let fields = stat.drop { $0 != ")" }.dropFirst(2).split(separator: " ")
        let ticks = [11, 12].compactMap { fields.count > $0 ? Double(fields[$0]) : nil }
        processorSeconds = ticks.reduce(0, +) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}
