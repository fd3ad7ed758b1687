import HTTPRules

/// A JSON value (RFC 8259) for output; the members of an object keep their order.
package indirect enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case number(Int64)
    /// A number; written as `null` if it is infinite or not a number.
    case decimal(Double)
    case text(String)
    case list([JSON])
    case object([Member])

    /// A member of an object.
    package struct Member: Hashable, Sendable {
        /// The member's name, unescaped.
        package var name: String
        /// The member's value.
        package var value: JSON

        /// Creates a member from its name and value.
        package init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    /// Creates a number, clamped to the range of `Int64`, or `null` for `nil`.
    package init(_ number: (some FixedWidthInteger)?) {
        self = number.map { .number(Int64(clamping: $0)) } ?? .null
    }

    /// Creates a list of strings.
    package init(_ strings: [String]) { self = .list(strings.map(JSON.text)) }

    /// The value as text on one line.
    package var compactText: String {
        var bytes: [UInt8] = []
        append(to: &bytes, isFormatted: false)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The value as UTF-8 with a final newline; each object in an outermost list has its own line.
    package var formattedBytes: [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes, isFormatted: true)
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    /// Appends the value as text; with `isFormatted`, each object in an outermost list on its own
    /// line.
    private func append(to bytes: inout [UInt8], isFormatted: Bool) {
        switch self {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .number(let number): bytes += "\(number)".utf8
        case .decimal(let number): bytes += (number.isFinite ? "\(number)" : "null").utf8
        case .text(let text): JSONText.append(text, to: &bytes)
        case .list(let values):
            let hasLines = isFormatted && values.contains(where: \.isObject)
            bytes.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                if hasLines { bytes.append(UInt8(ascii: "\n")) }
                value.append(to: &bytes, isFormatted: false)
            }
            if hasLines { bytes.append(UInt8(ascii: "\n")) }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSONText.append(member.name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.append(to: &bytes, isFormatted: isFormatted)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    private var isObject: Bool { if case .object = self { true } else { false } }
}

extension JSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral,
    ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByNilLiteral, ExpressibleByStringInterpolation
{
    /// Creates an object with `members` in their order.
    package init(dictionaryLiteral members: (String, JSON)...) {
        self = .object(members.map { Member($0.0, $0.1) })
    }

    /// Creates a list.
    package init(arrayLiteral values: JSON...) { self = .list(values) }
    /// Creates a string.
    package init(stringLiteral text: String) { self = .text(text) }
    /// Creates a number.
    package init(integerLiteral number: Int64) { self = .number(number) }
    /// Creates a Boolean.
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates `null`.
    package init(nilLiteral: ()) { self = .null }
}
