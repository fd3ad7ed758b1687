package import Foundation
import Glibc
import Synchronization

/// A new empty folder for temporary files, gone when released.
package final class TemporaryFolder: Sendable {
    /// Where it is.
    package let url: URL
    package var path: String { url.path }

    /// Makes it, where other users get to if it `isOpen`.
    package init(isOpen: Bool = false) throws {
        url = try isOpen ? Program.openFolder() : Program.temporaryFolder()
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// Where something of it is, or would be.
    package func appending(path: String) -> URL { url.appending(path: path) }

    /// Writes a file; where it is.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> URL {
        let file = appending(path: name)
        try Data(text.utf8).write(to: file)
        return file
    }
}

/// Hands over the path of a file with these bytes, which lasts as long as `body`.
///
/// Nil makes no file: the path leads nowhere.
package func withTemporaryFile<Result>(
    _ text: String?, _ body: (_ path: String) throws -> Result
) throws -> Result {
    let path = FileManager.default.temporaryDirectory.appending(path: "nut-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    if let text { try Data(text.utf8).write(to: URL(filePath: path)) }
    return try body(path)
}

/// What is to be done when the process of the tests ends: a value that is kept in a static is never
/// released.
enum ExitHandlers {
    private static let endings = Mutex<[@Sendable () -> Void]>([])

    private static let isRegistered: Bool = {
        let code = atexit {
            for end in ExitHandlers.endings.withLock({ $0 }).reversed() { end() }
        }
        return code == 0
    }()

    /// Has `end` called when the process ends, last come first.
    static func atExit(_ end: @escaping @Sendable () -> Void) {
        guard isRegistered else { return }
        endings.withLock { $0.append(end) }
    }
}
