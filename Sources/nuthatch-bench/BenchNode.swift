import Foundation

/// A `nuthatch serve` beside this program, ended with it.
final class BenchNode {
    private let process = Process()
    let port: Int

    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// Starts the node that lies beside this program; without `adminPort` that port is closed.
    init(_ flags: [String], port: Int, adminPort: Int? = nil) throws {
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.executableURL = own.deletingLastPathComponent().appendingPathComponent("nuthatch")
        process.arguments =
            [
                "serve", "--listen", "127.0.0.1:\(port)", "--admin-listen",
                adminPort.map { "127.0.0.1:\($0)" } ?? "off",
                "--allow-private-origin", "127.0.0.0/8", "--log-level", "warning",
            ] + flags
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        self.port = port
        try process.run()
    }

    var identifier: Int32 { process.processIdentifier }

    /// Asks it to stop and waits for that.
    func stop() {
        process.terminate()
        process.waitUntilExit()
    }
}
