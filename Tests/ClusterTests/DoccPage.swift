import Foundation
import Ground
import Testing

/// Pages of the guide whose promises are compared with the code.
enum DoccPage {
    /// The text of a page, or of the section under a heading.
    static func text(_ page: String, behind heading: String? = nil) throws -> String {
        let tests = URL(filePath: #filePath).deletingLastPathComponent()
        let folder = tests.appending(path: "../../Sources/Cluster/Cluster.docc")
        let text = try String(contentsOf: folder.appending(path: page), encoding: .utf8)
        guard let heading else { return text }
        return try #require(text.components(separatedBy: "\n## \(heading)\n").last)
    }

    /// The bytes in the code blocks of a section.
    static func code(_ part: String) -> [UInt8] {
        bytes(part.split(separator: "\n").filter { $0.hasPrefix("    ") }.joined())
    }

    /// The bytes written as these hexadecimal digits.
    static func bytes(_ hexadecimal: String) -> [UInt8] {
        let digits = hexadecimal.utf8.compactMap(ASCII.hexValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map {
            digits[$0] << 4 | digits[$0 + 1]
        }
    }
}
