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
