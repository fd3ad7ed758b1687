import Foundation
import Harness

/// The placeholders of a case's text, replaced when the case runs.
struct TableWords: Sendable {
    /// The case's own path.
    let path: String
    let host: String
    let originPort: Int
    /// The instant that the case uses as now.
    let now = Date()

    /// Returns the text with `{path}`, `{url}`, `{port}`, `{big}` (2 KiB), and dates replaced.
    ///
    /// A date is `{now}`, `{now-60}`, `{now+60}`; after a colon `850` or `asctime` selects one of
    /// the older formats.
    func filled(_ text: String) -> String {
        guard text.contains("{") else { return text }
        var result = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            result += rest[..<open] + word(String(rest[rest.index(after: open)..<close]))
            rest = rest[rest.index(after: close)...]
        }
        return result + rest
    }

    private func word(_ name: String) -> String {
        switch name {
        case "path": return path
        case "url": return "http://\(host)\(path)"
        case "port": return "\(originPort)"
        case "big": return String(repeating: "0123456789abcdef", count: 128)
        default:
            guard name.hasPrefix("now") else { return "{\(name)}" }
            let parts = name.dropFirst(3).split(
                separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let date = now.addingTimeInterval(Double(parts[0]) ?? 0)
            return Self.text(date, form: parts.count == 2 ? String(parts[1]) : "")
        }
    }

    private static func text(_ date: Date, form: String) -> String {
        let usual = HTTPDateFormat.text(date)
        // Sun, 06 Nov 1994 08:49:37 GMT
        let words = usual.split(separator: " ").map(String.init)
        switch form {
        case "850":
            let days = [
                "Sun,": "Sunday", "Mon,": "Monday", "Tue,": "Tuesday", "Wed,": "Wednesday",
                "Thu,": "Thursday", "Fri,": "Friday", "Sat,": "Saturday",
            ]
            let year = words[3].suffix(2)
            return "\(days[words[0]] ?? ""), \(words[1])-\(words[2])-\(year) \(words[4]) GMT"
        case "asctime":
            let day = words[1].hasPrefix("0") ? " " + words[1].dropFirst() : words[1]
            return "\(words[0].dropLast()) \(words[2]) \(day) \(words[4]) \(words[3])"
        default: return usual
        }
    }
}
