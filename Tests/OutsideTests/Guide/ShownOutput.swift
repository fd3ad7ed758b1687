/// What a page shows as the output of commands.
///
/// An ellipsis stands for any text of a line, and on a line by itself for any number of lines.
/// Times, ids, percentages and other values of one run, and the width of columns, are not
/// compared; nor are the numbers of a JSON document.
struct ShownOutput: Equatable {
    let text: String
    let isJSON: Bool

    init(_ text: String, isJSON: Bool) {
        self.text = text
        self.isJSON = isJSON
    }

    /// Returns whether commands printed what the page shows.
    func matches(_ printed: String) -> Bool {
        if isJSON { return Self.document(text) == Self.document(printed) }
        return Self.matches(Self.lines(text)[...], Self.lines(printed)[...])
    }

    private static func document(_ text: String) -> String {
        withoutVarying(text).replacing(/:\s*-?[0-9][0-9.]*/, with: ":N")
            .filter { !$0.isWhitespace }
    }

    private static func lines(_ text: String) -> [String] {
        var lines = text.split(omittingEmptySubsequences: false) { $0.isNewline }.map {
            withoutVarying(String($0)).split(separator: /\s+/).joined(separator: " ")
        }
        while lines.last?.isEmpty == true { lines.removeLast() }
        return lines
    }

    private static func withoutVarying(_ text: String) -> String {
        text.replacing(/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/, with: "DATE")
            .replacing(/[0-9]{2}\/[A-Z][a-z]{2}\/[0-9]{4}:[0-9: +]+/, with: "DATE")
            .replacing(/[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]+ GMT/, with: "DATE")
            .replacing(/\b[0-9a-f]{8,32}(?:-[0-9]+)?\b/, with: "ID")
            .replacing(/\b[0-9][0-9.]*(?:us|ms|s|m|min|h)\b/, with: "TIME")
            .replacing(/\b[0-9][0-9.]*%/, with: "SHARE")
            .replacing(/\b(ttl|loops|connections_max)=[0-9]+/) { "\($0.1)=N" }
    }

    private static func matches(_ shown: ArraySlice<String>, _ printed: ArraySlice<String>) -> Bool
    {
        guard let first = shown.first else { return printed.isEmpty }
        let rest = shown.dropFirst()
        if first == "…" {
            return (printed.startIndex...printed.endIndex).contains {
                matches(rest, printed[$0...])
            }
        }
        guard let line = printed.first, matches(first, line) else { return false }
        return matches(rest, printed.dropFirst())
    }

    private static func matches(_ shown: String, _ printed: String) -> Bool {
        let parts = shown.split(separator: "…", omittingEmptySubsequences: false)
        guard let first = parts.first, let last = parts.last, parts.count > 1 else {
            return shown == printed
        }
        guard printed.hasPrefix(first) else { return false }
        var rest = printed.dropFirst(first.count)
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let place = rest.firstRange(of: part) else { return false }
            rest = rest[place.upperBound...]
        }
        return rest.hasSuffix(last)
    }
}
