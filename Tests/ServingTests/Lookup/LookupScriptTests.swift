import Foundation
import Testing

/// Scripts of lookups: each line has an event and, behind a bar, the step reached and the effects.
@Suite("Scripts of lookups")
struct LookupScriptTests {
    private static let folder = Bundle.module.url(forResource: "Scripts", withExtension: nil)

    static let names: [String] = {
        let files = try? FileManager.default.contentsOfDirectory(atPath: folder?.path ?? "")
        return (files ?? []).filter { $0.hasSuffix(".txt") }.sorted()
    }()

    @Test("A lookup produces the steps and effects in its script", arguments: names)
    func script(name: String) throws {
        let url = try #require(Self.folder).appending(path: name)
        let text = try String(contentsOf: url, encoding: .utf8)
        var script = LookupScript()
        var played: [String] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        {
            let event = line.prefix { $0 != "|" }.trimmed
            guard !event.isEmpty, !event.hasPrefix("#") else {
                played.append(String(line))
                continue
            }
            let expected = line.drop { $0 != "|" }.dropFirst().trimmed
            let response = try script.play(event)
            #expect(response == expected, "\(name):\(index + 1): \(event)")
            let padding = String(repeating: " ", count: max(1, 24 - event.count))
            played.append(response.isEmpty ? event : event + padding + "| " + response)
        }
        // Rewrites the scripts after an intended change.
        if let path = ProcessInfo.processInfo.environment["LOOKUP_SCRIPTS_PLAYED"] {
            let text = played.joined(separator: "\n")
            try Data(text.utf8).write(to: URL(filePath: path).appending(path: name))
        }
    }

    @Test("There are scripts")
    func some() {
        #expect(Self.names.count >= 5)
    }
}

extension Substring {
    fileprivate var trimmed: String { trimmingCharacters(in: .whitespaces) }
}
