/// A value in a document: how it is sent, decoded, and described in the OpenAPI document.
package protocol DocumentValue: Decodable, Sendable {
    /// The value as JSON.
    var json: JSON { get }
    /// The schema of such values.
    static var schema: JSONSchema { get }
}

extension Bool: DocumentValue {
    /// The Boolean.
    package var json: JSON { .bool(self) }
    /// The schema of a Boolean.
    package static var schema: JSONSchema { .boolean }
}

extension String: DocumentValue {
    /// The string.
    package var json: JSON { .text(self) }
    /// The schema of any string.
    package static var schema: JSONSchema { .string }
}

extension Double: DocumentValue {
    /// The number, with its fraction.
    package var json: JSON { .decimal(self) }
    /// The schema of a share from 0 to 1.
    package static var schema: JSONSchema { .fraction }
}

extension DocumentValue where Self: FixedWidthInteger {
    /// The number, clamped to the range of `Int64`.
    package var json: JSON { JSON(self) }
    /// The schema of a count; it is not negative.
    package static var schema: JSONSchema { .count }
}

extension Int: DocumentValue {}
extension Int32: DocumentValue {}
extension Int64: DocumentValue {}
extension UInt16: DocumentValue {}
extension UInt64: DocumentValue {}

extension DocumentValue where Self: CaseIterable & RawRepresentable<String> {
    /// The raw value.
    package var json: JSON { .text(rawValue) }
    /// The schema of a choice among the raw values.
    package static var schema: JSONSchema { .enumeration(Self.self) }
}

extension Array: DocumentValue where Element: DocumentValue {
    /// The list.
    package var json: JSON { .list(map(\.json)) }
    /// The schema of a list of any length.
    package static var schema: JSONSchema { .list(of: Element.schema) }
}

/// Texts with names, in order.
package struct NamedTexts: DocumentValue, Equatable {
    /// The names and their texts.
    package var members: [JSON.Member] = []

    /// Creates an empty set.
    package init() {}

    /// Creates a set of `pairs`.
    package init(_ pairs: [(name: String, text: String)]) {
        members = pairs.map { JSON.Member($0.name, .text($0.text)) }
    }

    /// Decodes an object whose values are all strings.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: JSONKey.self)
        members = try container.allKeys.map { key in
            JSON.Member(key.stringValue, .text(try container.decode(String.self, forKey: key)))
        }
    }

    /// The texts as an object.
    package var json: JSON { .object(members) }
    /// The schema of an object whose values are all strings.
    package static var schema: JSONSchema { .map(of: .string) }
}

/// Counts with names, in order.
package struct NamedCounts: DocumentValue, Equatable {
    /// A name and its count.
    package struct Item: Equatable, Sendable {
        /// The name.
        package let name: String
        /// The count.
        package let count: UInt64
    }

    /// The names and their counts.
    package var items: [Item] = []

    /// Creates an empty set.
    package init() {}

    /// Creates a set of `pairs`.
    package init(_ pairs: [(label: String, count: UInt64)]) {
        items = pairs.map { Item(name: $0.label, count: $0.count) }
    }

    /// Decodes an object whose values are all counts, sorted by name: a decoder has no order.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: JSONKey.self)
        items = try container.allKeys.map { key in
            Item(name: key.stringValue, count: try container.decode(UInt64.self, forKey: key))
        }.sorted { $0.name < $1.name }
    }

    /// The count of a name; 0 for an unknown one.
    package subscript(name: String) -> UInt64 { items.first { $0.name == name }?.count ?? 0 }

    /// The counts as an object.
    package var json: JSON { .object(items.map { JSON.Member($0.name, JSON($0.count)) }) }
    /// The schema of an object whose values are all counts.
    package static var schema: JSONSchema { .map(of: .count) }
}

/// The name of a member of a JSON object.
struct JSONKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
}
