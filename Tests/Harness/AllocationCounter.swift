import Foundation

/// Counts the memory allocations of a process it is loaded into by way of `LD_PRELOAD`.
package final class AllocationCounter: Sendable {
    /// The C compiler refused.
    package struct NotCompiled: Error, CustomStringConvertible {
        /// What it said.
        package let description: String
    }

    private let folder: URL

    /// Compiles the library and makes an empty count.
    ///
    /// - Throws: `NotCompiled`, or `NotFound` if there is neither clang nor cc.
    package init() throws {
        folder = try Program.temporaryFolder()
        let source = folder.appendingPathComponent("count.c")
        try Data(Self.source.utf8).write(to: source)
        try Data(count: 8).write(to: countFile)
        let compiler = try ["clang", "cc", "gcc"].compactMap { try? Program.find($0) }.first
            .unwrapped(else: Program.NotFound(name: "clang"))
        let result = try Program.run(
            compiler, ["-O2", "-shared", "-fPIC", "-o", library.path, source.path])
        guard result.status == 0 else { throw NotCompiled(description: result.errors) }
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private var library: URL { folder.appendingPathComponent("libcount.so") }
    private var countFile: URL { folder.appendingPathComponent("count") }

    /// The variables that make a process count.
    package var environment: [String: String] {
        ["LD_PRELOAD": library.path, "ALLOCATION_COUNT_FILE": countFile.path]
    }

    /// Allocations so far, over all processes that were given the environment.
    package var count: Int {
        let bytes = (try? Data(contentsOf: countFile)) ?? Data()
        return Int(bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}

extension Optional {
    fileprivate func unwrapped(else error: any Error) throws -> Wrapped {
        guard let self else { throw error }
        return self
    }
}
