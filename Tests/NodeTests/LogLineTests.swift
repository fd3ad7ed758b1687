import Admin
import Foundation
import Logging
import Node
import NodeConfiguration
import Testing

@Suite("Lines of the node's log")
struct LogLineTests {
    private func line(
        _ message: String, _ metadata: Logger.Metadata = [:], _ format: Configuration.LogFormat
    ) -> String {
        LogLine(time: "2026-11-21T01:02:03Z", level: .warning, message: message, metadata)
            .text(format)
    }

    @Test("The levels that operators can set are those of the logger")
    func levels() {
        #expect(LogLevelDocument.levels == Logger.Level.allCases.map(\.rawValue))
    }

    @Test("text: time, level and message, followed by logfmt fields")
    func text() {
        #expect(
            line("all is\nwell", ["b": .stringConvertible(3), "a": "x y"], .text)
                == #"2026-11-21T01:02:03Z warning all is\nwell a="x y" b=3"# + "\n")
        for (level, begin) in [(.info, "info  "), (.debug, "debug "), (.critical, "critical ")]
            as [(Logger.Level, String)]
        {
            let line = LogLine(time: "T", level: level, message: "m \"q\" =", [:])
            #expect(line.text(.text) == "T \(begin)m \"q\" =\n")
        }
    }

    @Test("logfmt: simple words are bare, everything else is quoted")
    func logfmt() {
        let metadata: Logger.Metadata = [
            "b": .stringConvertible(3), "a": "x y", "list": ["1", "2 3"], "map": ["k": "v"],
            "e": "", "path": "/a\\b", "q": "a=\"b\"",
        ]
        #expect(
            line("all is\nwell", metadata, .logfmt)
                == #"2026-11-21T01:02:03Z level=warning message="all is\nwell" a="x y" b=3 e="" "#
                + #"list="1, 2 3" map="k v" path="/a\\b" q="a=\"b\"""# + "\n")
    }

    @Test("JSON: numbers and booleans keep their types, lists too, and keys are unique")
    func json() throws {
        let metadata: Logger.Metadata = [
            "n": .stringConvertible(3), "yes": .stringConvertible(true), "list": ["1", ["2"]],
            "map": ["k": .stringConvertible(UInt16(7))], "time": "other", "level": "other",
        ]
        let text = line("m", metadata, .json)
        #expect(text.hasPrefix(#"{"time":"2026-11-21T01:02:03Z","level":"warning","message":"m""#))
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(object?["n"] as? Int == 3 && object?["yes"] as? Bool == true)
        #expect((object?["map"] as? [String: Int]) == ["k": 7])
        #expect(object?["time_"] as? String == "other" && object?["level_"] as? String == "other")
        #expect(object?.count == 9)
    }

    @Test(
        "No client's text ends a line, leaves its field or changes its direction",
        arguments: [
            "\n", "\r\n", "\u{0}", "\u{1B}[31m", "\u{7F}", "\u{85}", "\u{9B}2J", "\u{2028}",
            "\u{202E}gpj", "\u{E0001}", "\"", "\\", "\\n", "é日本", "a=b", "{}", " ", "\u{A0}",
        ])
    func hostile(text: String) throws {
        for format in Configuration.LogFormat.allCases {
            let line = line(text, ["k": "\(text)", "l": ["\(text)"]], format)
            let inner = line.dropLast()
            #expect(line.hasSuffix("\n"))
            let isClean = inner.unicodeScalars.allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator: false
                default: true
                }
            }
            #expect(isClean, "\(inner)")
        }
        let object = try JSONSerialization.jsonObject(
            with: Data(line(text, ["k": "\(text)"], .json).utf8))
        let members = object as? [String: String]
        #expect(members?["message"] == text && members?["k"] == text)
    }
}
