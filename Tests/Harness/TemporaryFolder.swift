package import Foundation
import Glibc
import Synchronization

/// A new empty folder for temporary files, removed on release.
package final class TemporaryFolder: Sendable {
    /// The location of the folder.
    package let url: URL
    package var path: String { url.path }

    /// Creates the folder, reachable by other users if `isOpen`.
    package init(isOpen: Bool = false) throws {
        url = try isOpen ? Program.openFolder() : Program.temporaryFolder()
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// Returns the location of a file in the folder, which need not exist.
    package func appending(path: String) -> URL { url.appending(path: path) }

    /// Writes a file and returns its location.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> URL {
        let file = appending(path: name)
        try Data(text.utf8).write(to: file)
        return file
    }
}

/// Calls `body` with the path of a file of these bytes, which exists until `body` returns.
///
/// With `nil` no file is created and the path does not exist.
package func withTemporaryFile<Result>(
    _ text: String?, _ body: (_ path: String) throws -> Result
) throws -> Result {
    let path = FileManager.default.temporaryDirectory.appending(path: "nut-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    if let text { try Data(text.utf8).write(to: URL(filePath: path)) }
    return try body(path)
}

/// Actions at the end of the test process, because a value kept in a static is never released.
enum ExitHandlers {
    private static let endings = Mutex<[@Sendable () -> Void]>([])

    private static let isRegistered: Bool = {
        let code = atexit {
            for end in ExitHandlers.endings.withLock({ $0 }).reversed() { end() }
        }
        return code == 0
    }()

    /// Registers an action for the end of the process; the last one registered runs first.
    static func atExit(_ end: @escaping @Sendable () -> Void) {
        guard isRegistered else { return }
        endings.withLock { $0.append(end) }
    }
}
