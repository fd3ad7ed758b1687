import Foundation
import Harness

extension NodeProcess {
    /// Runs a command of an operator's who asks this node.
    func command(
        _ arguments: String..., environment: [String: String] = [:]
    ) throws -> ProgramResult {
        try Self.run(
            arguments + ["--node", "127.0.0.1:\(adminPort)"], environment: environment)
    }
}

extension ProgramResult {
    /// What it printed, as text.
    var text: String { String(decoding: output, as: UTF8.self) }

    /// What it printed, as one document.
    var document: [String: Any] {
        (try? JSONSerialization.jsonObject(with: output)) as? [String: Any] ?? [:]
    }

    /// The line that begins with a word, or nothing.
    func line(_ word: String) -> String {
        text.split(separator: "\n").first { $0.hasPrefix(word) }.map(String.init) ?? ""
    }
}
