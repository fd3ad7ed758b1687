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
