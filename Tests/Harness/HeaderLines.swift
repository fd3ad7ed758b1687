/// One field line of a message, as text.
package struct HeaderField: Sendable, Equatable {
    /// The name as it was sent.
    package let name: String
    /// The value without the white space around it.
    package let value: String

    /// A field line of this name and value.
    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The field lines of a message in the order they came, found by name without regard to case.
package struct HeaderFields: Sendable, Equatable {
    /// The lines in their order.
    package var lines: [HeaderField]

    /// A list of these lines.
    package init(_ lines: [HeaderField] = []) {
        self.lines = lines
    }

    /// The value of the first line of that name.
    package subscript(name: String) -> String? {
        all(name).first
    }

    /// The values of every line of that name.
    package func all(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return lines.filter { $0.name.lowercased() == wanted }.map(\.value)
    }

    /// The members of a comma-separated list field, over all its lines.
    package func members(_ name: String) -> [String] {
        all(name).flatMap { $0.split(separator: ",") }.map {
            $0.trimmingWhitespace()
        }
    }

    /// Reads one `name: value` line; nil if it is none, or has space before its colon.
    static func parse(_ line: String) -> HeaderField? {
        guard let colon = line.firstIndex(of: ":"), colon > line.startIndex else { return nil }
        let name = line[..<colon]
        guard name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        let value = line[line.index(after: colon)...].trimmingWhitespace()
        return HeaderField(String(name), value)
    }
}

extension StringProtocol {
    /// The text without spaces and tabs at its ends.
    func trimmingWhitespace() -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        return String(String(drop(while: isSpace).reversed()).drop(while: isSpace).reversed())
    }
}
