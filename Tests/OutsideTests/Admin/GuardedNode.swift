import Foundation
import Harness

/// A node with one admin-port token for each role.
final class GuardedNode {
    let node: NodeProcess
    private let folder: TemporaryFolder

    /// The roles and their tokens; each role includes the rights of those before it.
    static let words = ["read", "purge", "admin"].map { (role: $0, token: token($0)) }

    static func token(_ role: String) -> String { String(repeating: role, count: 4) }

    init(_ flags: String..., in space: NetworkNamespace? = nil) throws {
        folder = try TemporaryFolder()
        let lines = Self.words.map { "\($0.role) \($0.token)\n" }.joined()
        let file = try folder.write("# of everybody\n" + lines, to: "tokens")
        node = try NodeProcess(["--admin-token-file", file.path] + flags, in: space)
    }

    deinit { node.kill() }
}
