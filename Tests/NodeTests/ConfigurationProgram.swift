import Foundation

/// The built `nuthatch` beside this test bundle, run as an operator would run it.
struct ConfigurationProgram {
    struct Outcome {
        let status: Int32
        let output: Data
        let complaint: String
    }

    /// Why the program could not be run.
    struct Missing: Error, CustomStringConvertible {
        let path: String
        var description: String { "\(path) is not built; build with swift build --build-tests" }
    }

    /// Runs the program to its end.
    static func run(
        _ arguments: [String], environment: [String: String] = [:]
    ) throws -> Outcome {
        let path = try directory().appending(path: "nuthatch").path
        guard FileManager.default.isExecutableFile(atPath: path) else { throw Missing(path: path) }
        let process = Process()
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.environment = environment
        let output = Pipe()
        let complaint = FileManager.default.temporaryDirectory
            .appending(path: "nuthatch-\(UUID().uuidString)")
        guard FileManager.default.createFile(atPath: complaint.path, contents: nil)
        else { throw CocoaError(.fileWriteUnknown) }
        defer { try? FileManager.default.removeItem(at: complaint) }
        process.standardOutput = output
        process.standardError = try FileHandle(forWritingTo: complaint)
        try process.run()
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Outcome(
            status: process.terminationStatus, output: bytes,
            complaint: try String(contentsOf: complaint, encoding: .utf8))
    }

    /// Where the build puts its products: the running test program's directory on Linux.
    private static func directory() throws -> URL {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(filePath: own).deletingLastPathComponent()
    }
}
