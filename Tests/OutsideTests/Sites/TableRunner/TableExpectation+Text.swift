import Foundation

extension TableExpectation {
    /// Parses a line of expectations.
    ///
    /// Words that may share a line: `fetched`, `cached`, `validated`, `background`, `stale`,
    /// `breakable`, a status.
    ///
    /// Expectations on a line of their own: `asked 2`, `asked 1..2`, `age 100..110`, `answer 1`,
    /// `body text`, `interim 103 Name: value`, `cs fwd=stale`, `cs hit`, `cs no hit`, and for a
    /// field `ID: value`, `ID ~ part`, `ID !~ part`, `no Name`, `has Name`; the same after
    /// `trailer` and `origin`, and `origin target /x`, `origin method POST`, `origin body text`.
    static func read(_ text: String) throws -> [TableExpectation] {
        let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
        let (word, rest) = (parts[0], parts.count > 1 ? parts[1] : "")
        switch word {
        case "asked": return [.asked(try range(rest))]
        case "answer": return [.answer(Int(rest) ?? -1)]
        case "body": return [.body(rest)]
        case "age": return [.age(try range(rest))]
        case "interim": return [interim(rest)]
        case "cs": return [cacheStatus(rest)]
        case "trailer":
            let (name, match) = try field(rest)
            return [.trailer(name, match)]
        case "origin": return [try origin(rest)]
        default:
            if let (name, match) = try? field(text) { return [.field(name, match)] }
            return try text.split(separator: " ").map { try single(String($0)) }
        }
    }

    private static func single(_ word: String) throws -> TableExpectation {
        switch word {
        case "fetched": return .fetched
        case "cached": return .cached
        case "validated": return .validated
        case "background": return .background
        case "stale": return .stale
        case "breakable": return .breakable
        default:
            guard let status = Int(word) else { throw TableReader.Wrong(description: word) }
            return .status(status)
        }
    }

    private static func origin(_ text: String) throws -> TableExpectation {
        let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
        let rest = parts.count > 1 ? parts[1] : ""
        switch parts.first {
        case "target": return .originTarget(rest)
        case "method": return .originMethod(rest)
        case "body": return .originBody(rest)
        case "trailer":
            let (name, match) = try field(rest)
            return .originTrailer(name, match)
        default:
            let (name, match) = try field(text)
            return .originField(name, match)
        }
    }

    private static func field(_ text: String) throws -> (String, TableMatch) {
        let words = text.split(separator: " ", maxSplits: 2).map(String.init)
        guard !words.isEmpty else { throw TableReader.Wrong(description: "no field") }
        if words.count == 2, words[0] == "no" { return (words[1], .absent) }
        if words.count == 2, words[0] == "has" { return (words[1], .present) }
        if words.count == 3, words[1] == "~" { return (words[0], .contains(words[2])) }
        if words.count == 3, words[1] == "!~" { return (words[0], .lacks(words[2])) }
        guard words[0].hasSuffix(":") else { throw TableReader.Wrong(description: text) }
        let value = text.dropFirst(words[0].count).drop { $0 == " " }
        return (String(words[0].dropLast()), .equal(String(value)))
    }

    private static func cacheStatus(_ text: String) -> TableExpectation {
        if let (name, match) = try? field(text) { return .cacheStatus(name, match) }
        let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
        return .cacheStatus(parts[0], parts.count == 2 ? .equal(parts[1]) : .present)
    }

    private static func interim(_ text: String) -> TableExpectation {
        let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
        return .interim(Int(parts[0]) ?? -1, parts.count == 2 ? parts[1] : nil)
    }

    private static func range(_ text: String) throws -> ClosedRange<Int> {
        let ends = TableReader.split(text[...], by: "..").compactMap { Int($0) }
        guard let first = ends.first, let last = ends.last, first <= last else {
            throw TableReader.Wrong(description: text)
        }
        return first...last
    }
}
