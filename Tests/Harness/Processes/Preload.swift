import Foundation

/// A library in C that is loaded into a process before all others, by way of `LD_PRELOAD`.
struct Preload {
    /// The C compiler refused.
    struct NotCompiled: Error, CustomStringConvertible {
        /// What it said.
        let description: String
    }

    private let library: URL

    /// Compiles the library into `folder`.
    ///
    /// - Throws: `NotCompiled`, or `NotFound` if there is neither clang nor cc.
    init(_ source: String, in folder: URL) throws {
        let file = folder.appendingPathComponent("preload.c")
        try Data(source.utf8).write(to: file)
        library = folder.appendingPathComponent("libpreload.so")
        guard let compiler = ["clang", "cc", "gcc"].compactMap({ try? Program.find($0) }).first
        else { throw Program.NotFound(name: "clang") }
        let result = try Program.run(
            compiler, ["-O2", "-shared", "-fPIC", "-o", library.path, file.path])
        guard result.status == 0 else { throw NotCompiled(description: result.errors) }
    }

    /// The variables that load it, beside its own.
    func environment(_ own: [String: String]) -> [String: String] {
        own.merging(["LD_PRELOAD": library.path]) { $1 }
    }
}
