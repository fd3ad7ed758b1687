import Foundation
import Harness

/// A Python with packages of PyPI in it, in a folder of the build products, where it stays.
enum PythonTool {
    /// Makes sure that it is there.
    ///
    /// - Parameters:
    ///   - requirement: What `pip` is to install, as `NAME==VERSION`.
    ///   - name: The folder's name.
    ///   - modules: What it has to be able to import then.
    /// - Returns: The path of its interpreter; nil where it cannot be had.
    static func having(_ requirement: String, in name: String, modules: [String]) -> String? {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../.build/\(name)").standardizedFileURL
        let python = folder.appendingPathComponent("bin/python").path
        let parts = requirement.split(separator: "=")
        // Without its extras.
        let package = parts[0].prefix { $0 != "[" }
        let question = """
            import \(modules.joined(separator: ", ")), importlib.metadata
            assert importlib.metadata.version("\(package)") == "\(parts[1])"
            """
        let isThere = { (try? Program.run(python, ["-c", question]).status) == 0 }
        if isThere() { return python }
        guard let system = try? Program.find("python3") else { return nil }
        _ = try? Program.run(system, ["-m", "venv", "--clear", folder.path], seconds: 60)
        let install = ["-m", "pip", "install", "--quiet", requirement]
        _ = try? Program.run(python, install, seconds: 180)
        return isThere() ? python : nil
    }
}
