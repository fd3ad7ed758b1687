package import Foundation

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
