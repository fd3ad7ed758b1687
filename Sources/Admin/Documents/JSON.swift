import HTTPRules

/// A value of JSON (RFC 8259) that is to be written; members of an object stay in their order.
package indirect enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case number(Int64)
    /// What is no number, or infinite, is written as null.
    case decimal(Double)
    case text(String)
    case list([JSON])
    case object([Member])

    package struct Member: Hashable, Sendable {
        package var name: String
        package var value: JSON

        package init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    package init(_ number: (some FixedWidthInteger)?) {
        self = number.map { .number(Int64(clamping: $0)) } ?? .null
    }

    package init(_ text: String?) { self = text.map(JSON.text) ?? .null }

    /// What is not UTF-8 is shown as U+FFFD.
    package init(_ bytes: [UInt8]?) { self.init(bytes.map { String(decoding: $0, as: UTF8.self) }) }

    package init(_ strings: [String]) { self = .list(strings.map(JSON.text)) }

    /// On one line.
    package var line: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .number(let number): "\(number)"
        case .decimal(let number): number.isFinite ? "\(number)" : "null"
        case .text(let text): JSONText.quoted(text)
        case .list(let values): "[\(values.map(\.line).joined(separator: ","))]"
        case .object(let members):
            "{"
                + members.map { "\(JSONText.quoted($0.name)):\($0.value.line)" }
                .joined(separator: ",") + "}"
        }
    }

    /// The same with each element of a list of objects on a line of its own, and a line's end.
    package var page: String { paged + "\n" }

    private var paged: String {
        switch self {
        case .object(let members):
            let lines = members.map { "\(JSONText.quoted($0.name)):\($0.value.paged)" }
            return "{\(lines.joined(separator: ","))}"
        case .list(let values) where values.contains(where: \.isObject):
            return "[" + values.map { "\n" + $0.line }.joined(separator: ",") + "\n]"
        default: return line
        }
    }

    private var isObject: Bool { if case .object = self { true } else { false } }
}

extension JSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral,
    ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByNilLiteral, ExpressibleByStringInterpolation
{
    package init(dictionaryLiteral members: (String, JSON)...) {
        self = .object(members.map { Member($0.0, $0.1) })
    }

    package init(arrayLiteral values: JSON...) { self = .list(values) }
    package init(stringLiteral text: String) { self = .text(text) }
    package init(integerLiteral number: Int64) { self = .number(number) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(nilLiteral: ()) { self = .null }
}
