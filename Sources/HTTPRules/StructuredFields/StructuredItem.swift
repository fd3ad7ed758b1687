/// A value with its parameters (RFC 9651 §3.3).
package struct StructuredItem: Hashable, Sendable {
    /// The value without parameters.
    package var bareItem: StructuredBareItem
    /// The parameters of the value.
    package var parameters: StructuredParameters

    /// Creates an item from its parts.
    package init(_ bareItem: StructuredBareItem, _ parameters: StructuredParameters = .init()) {
        self.bareItem = bareItem
        self.parameters = parameters
    }

    /// Parses an item that fills a field's value; `nil` if any of it is malformed (RFC 9651 §4.2).
    ///
    /// The lines of a field must be joined with commas.
    package init?(_ value: Span<UInt8>) {
        var reader = StructuredFieldParser()
        reader.skipSpaces(value)
        guard let item = reader.item(value), reader.isAtEnd(value) else { return nil }
        self = item
    }

    /// Appends the serialised item (RFC 9651 §4.1.3).
    package func append(to bytes: inout [UInt8]) {
        bareItem.append(to: &bytes)
        parameters.append(to: &bytes)
    }
}

/// A list of items in parentheses, with parameters (RFC 9651 §3.1.1).
package struct StructuredInnerList: Hashable, Sendable {
    /// The items in order.
    package var items: [StructuredItem]
    /// The parameters of the list.
    package var parameters: StructuredParameters

    /// Creates an inner list from its parts.
    package init(_ items: [StructuredItem], _ parameters: StructuredParameters = .init()) {
        self.items = items
        self.parameters = parameters
    }

    /// Appends the serialised inner list (RFC 9651 §4.1.1.1).
    package func append(to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "("))
        for (index, item) in items.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: " ")) }
            item.append(to: &bytes)
        }
        bytes.append(UInt8(ascii: ")"))
        parameters.append(to: &bytes)
    }
}

/// A member of a list, or the value of a dictionary's key.
package enum StructuredMember: Hashable, Sendable {
    case item(StructuredItem)
    case innerList(StructuredInnerList)

    /// The value of an item; `nil` for an inner list.
    package var bareItem: StructuredBareItem? {
        switch self {
        case .item(let item): item.bareItem
        case .innerList: nil
        }
    }

    /// The parameters of the item or inner list.
    package var parameters: StructuredParameters {
        switch self {
        case .item(let item): item.parameters
        case .innerList(let list): list.parameters
        }
    }

    /// Appends the serialised member.
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .item(let item): item.append(to: &bytes)
        case .innerList(let list): list.append(to: &bytes)
        }
    }
}

/// The parameters of an item or inner list: unique keys with values, in the order in which the keys
/// first occur (RFC 9651 §3.1.2).
package struct StructuredParameters: Hashable, Sendable {
    /// The keys and values in order.
    package private(set) var pairs: [Pair] = []

    /// A key and its value.
    package struct Pair: Hashable, Sendable {
        /// The key, in lower case by its grammar.
        package let key: [UInt8]
        /// The value of the key.
        package fileprivate(set) var value: StructuredBareItem

        /// Creates a pair from its parts.
        package init(key: [UInt8], value: StructuredBareItem) {
            self.key = key
            self.value = value
        }
    }

    /// Creates an empty set of parameters.
    package init() {}

    /// True if there are no parameters.
    package var isEmpty: Bool { pairs.isEmpty }
    /// The number of parameters.
    package var count: Int { pairs.count }

    /// The value of `key`; `nil` if the key is absent.
    package subscript(key: String) -> StructuredBareItem? {
        pairs.first { $0.key.elementsEqual(key.utf8) }?.value
    }

    /// Sets the value of `key`, which keeps its position if it is present (RFC 9651 §4.2.3.2).
    package mutating func set(_ key: [UInt8], to value: StructuredBareItem) {
        if let index = pairs.firstIndex(where: { $0.key == key }) {
            pairs[index].value = value
        } else {
            pairs.append(Pair(key: key, value: value))
        }
    }

    /// Appends the serialised parameters (RFC 9651 §4.1.1.2).
    package func append(to bytes: inout [UInt8]) {
        for pair in pairs {
            bytes.append(UInt8(ascii: ";"))
            bytes += pair.key
            if pair.value == .boolean(true) { continue }
            bytes.append(UInt8(ascii: "="))
            pair.value.append(to: &bytes)
        }
    }
}
