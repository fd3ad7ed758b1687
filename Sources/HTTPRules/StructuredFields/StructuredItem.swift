/// A value with its parameters (RFC 9651 §3.3).
package struct StructuredItem: Hashable, Sendable {
    package var bareItem: StructuredBareItem
    package var parameters: StructuredParameters

    package init(_ bareItem: StructuredBareItem, _ parameters: StructuredParameters = .init()) {
        self.bareItem = bareItem
        self.parameters = parameters
    }

    /// The item that is the whole of a field's value; nil if there is none, or anything else (RFC
    /// 9651 §4.2).
    ///
    /// The lines of a field are to be joined with commas.
    package init?(_ value: Span<UInt8>) {
        var reader = StructuredFieldParser()
        reader.skipSpaces(value)
        guard let item = reader.item(value), reader.isAtEnd(value) else { return nil }
        self = item
    }

    /// Appends it as it is written in a field (RFC 9651 §4.1.3).
    package func append(to bytes: inout [UInt8]) {
        bareItem.append(to: &bytes)
        parameters.append(to: &bytes)
    }
}

/// Items in parentheses (RFC 9651 §3.1.1).
package struct StructuredInnerList: Hashable, Sendable {
    package var items: [StructuredItem]
    package var parameters: StructuredParameters

    package init(_ items: [StructuredItem], _ parameters: StructuredParameters = .init()) {
        self.items = items
        self.parameters = parameters
    }

    /// Appends it as it is written in a field (RFC 9651 §4.1.1.1).
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

/// What a list holds, and what the keys of a dictionary stand for.
package enum StructuredMember: Hashable, Sendable {
    case item(StructuredItem)
    case innerList(StructuredInnerList)

    /// The value of an item; nil for an inner list.
    package var bareItem: StructuredBareItem? {
        switch self {
        case .item(let item): item.bareItem
        case .innerList: nil
        }
    }

    package var parameters: StructuredParameters {
        switch self {
        case .item(let item): item.parameters
        case .innerList(let list): list.parameters
        }
    }

    /// Appends it as it is written in a field.
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .item(let item): item.append(to: &bytes)
        case .innerList(let list): list.append(to: &bytes)
        }
    }
}

/// What qualifies an item or an inner list: keys, each once, with their values in the order of
/// their first mention (RFC 9651 §3.1.2).
package struct StructuredParameters: Hashable, Sendable {
    package private(set) var pairs: [Pair] = []

    /// A key, in lower case by its grammar, and what stands behind it.
    package struct Pair: Hashable, Sendable {
        package let key: [UInt8]
        package fileprivate(set) var value: StructuredBareItem

        package init(key: [UInt8], value: StructuredBareItem) {
            self.key = key
            self.value = value
        }
    }

    package init() {}

    package var isEmpty: Bool { pairs.isEmpty }
    package var count: Int { pairs.count }

    /// The value of `key`; nil if it is not there.
    package subscript(key: String) -> StructuredBareItem? {
        pairs.first { $0.key.elementsEqual(key.utf8) }?.value
    }

    /// Gives `key` this value, in its old place if it has one (RFC 9651 §4.2.3.2).
    package mutating func set(_ key: [UInt8], to value: StructuredBareItem) {
        if let index = pairs.firstIndex(where: { $0.key == key }) {
            pairs[index].value = value
        } else {
            pairs.append(Pair(key: key, value: value))
        }
    }

    /// Appends them as they are written in a field (RFC 9651 §4.1.1.2).
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
