import Foundation
import Harness

extension NodeProcess {
    /// Runs an operator's command against this node.
    func command(
        _ arguments: String..., environment: [String: String] = [:]
    ) throws -> ProgramResult {
        try Self.run(
            arguments + ["--node", "127.0.0.1:\(adminPort)"], environment: environment)
    }
}

extension ProgramResult {
    /// The text of standard output.
    var text: String { String(decoding: output, as: UTF8.self) }

    /// The standard output as one JSON document.
    var document: [String: Any] {
        (try? JSONSerialization.jsonObject(with: output)) as? [String: Any] ?? [:]
    }

    /// Returns the first line that begins with a word, or an empty string.
    func line(_ word: String) -> String {
        text.split(separator: "\n").first { $0.hasPrefix(word) }.map(String.init) ?? ""
    }
}
