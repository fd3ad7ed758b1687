import Foundation

/// A C library that is loaded into a process before all others, through `LD_PRELOAD`.
struct Preload {
    /// The error for a library that the C compiler rejects.
    struct NotCompiled: Error, CustomStringConvertible {
        /// The compiler's output.
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

    /// Returns the environment variables that load the library, merged with `own`.
    func environment(_ own: [String: String]) -> [String: String] {
        own.merging(["LD_PRELOAD": library.path]) { $1 }
    }
}
