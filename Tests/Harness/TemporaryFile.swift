import Foundation

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
