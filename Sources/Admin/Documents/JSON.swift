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
    package var compactText: String {
        var bytes: [UInt8] = []
        append(to: &bytes, isFormatted: false)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The same with each element of a list of objects on a line of its own, and a line's end.
    package var formattedBytes: [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes, isFormatted: true)
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

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
    package init(dictionaryLiteral members: (String, JSON)...) {
        self = .object(members.map { Member($0.0, $0.1) })
    }

    package init(arrayLiteral values: JSON...) { self = .list(values) }
    package init(stringLiteral text: String) { self = .text(text) }
    package init(integerLiteral number: Int64) { self = .number(number) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(nilLiteral: ()) { self = .null }
}
