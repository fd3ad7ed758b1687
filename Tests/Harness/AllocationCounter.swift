import Foundation

/// Counts the memory allocations of a process it is loaded into.
package final class AllocationCounter: Sendable {
    private let folder: TemporaryFolder
    private let preload: Preload

    /// Compiles the library and makes an empty count.
    ///
    /// - Throws: What keeps it from being compiled.
    package init() throws {
        folder = try TemporaryFolder()
        preload = try Preload(Self.source, in: folder.url)
        try Data(count: 8).write(to: countFile)
    }

    private var countFile: URL { folder.appending(path: "count") }

    /// The variables that make a process count.
    package var environment: [String: String] {
        preload.environment(["ALLOCATION_COUNT_FILE": countFile.path])
    }

    /// Allocations so far, over all processes that were given the environment.
    package var count: Int {
        let bytes = (try? Data(contentsOf: countFile)) ?? Data()
        return Int(bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
