import Foundation
import Harness

/// A node whose operators have a token of each role.
final class GuardedNode {
    let node: NodeProcess
    private let folder: URL

    /// The roles with their tokens; each may do what those before it may.
    static let words = ["read", "purge", "admin"].map { (role: $0, token: token($0)) }

    static func token(_ role: String) -> String { String(repeating: role, count: 4) }

    init(_ flags: String..., in space: NetworkSpace? = nil) throws {
        folder = try Program.temporaryFolder()
        let file = folder.appending(path: "tokens")
        let lines = Self.words.map { "\($0.role) \($0.token)\n" }.joined()
        try Data(("# of everybody\n" + lines).utf8).write(to: file)
        node = try NodeProcess(["--admin-token-file", file.path] + flags, in: space)
    }

    deinit {
        node.kill()
        try? FileManager.default.removeItem(at: folder)
    }
}
