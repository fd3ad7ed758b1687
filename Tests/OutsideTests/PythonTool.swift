import Foundation
import Harness

/// A Python environment with PyPI packages, kept in the build folder.
enum PythonTool {
    /// Installs the environment if it is missing.
    ///
    /// - Parameters:
    ///   - requirement: The requirement for `pip`, as `NAME==VERSION`.
    ///   - name: The folder's name.
    ///   - modules: The modules that must be importable afterwards.
    /// - Returns: The path of the interpreter; `nil` if the environment cannot be made.
    static func having(_ requirement: String, in name: String, modules: [String]) -> String? {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../.build/\(name)").standardizedFileURL
        let python = folder.appendingPathComponent("bin/python").path
        let parts = requirement.split(separator: "=")
        // Without its extras.
        let package = parts[0].prefix { $0 != "[" }
        let check = """
            import \(modules.joined(separator: ", ")), importlib.metadata
            assert importlib.metadata.version("\(package)") == "\(parts[1])"
            """
        let isThere = { (try? Program.run(python, ["-c", check]).status) == 0 }
        if isThere() { return python }
        guard let system = try? Program.find("python3") else { return nil }
        _ = try? Program.run(system, ["-m", "venv", "--clear", folder.path], seconds: 60)
        let install = ["-m", "pip", "install", "--quiet", requirement]
        _ = try? Program.run(python, install, seconds: 180)
        return isThere() ? python : nil
    }
}
