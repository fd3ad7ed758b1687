import Ground

/// A set of arbitrary field names, in lower case and in byte order (RFC 9110 §5.1).
///
/// Used for lists of names: Vary, Connection, `no-cache="…"`, `private="…"`. ``FieldSet`` is for
/// the few names that Nuthatch acts on.
package struct FieldNames: Hashable, Sendable {
    /// The distinct names in lower case, in ascending byte order.
    package private(set) var names: [[UInt8]] = []

    /// Creates an empty set.
    package init() {}

    /// Creates the set of these names, written in any case.
    package init(_ names: [String]) {
        for name in names {
            let bytes = Array(name.utf8)
            insert(bytes.span, at: 0..<bytes.count)
        }
    }

    /// Creates the set of these names, which must be in lower case and ascend.
    init(ascending names: [[UInt8]]) {
        self.names = names
    }

    /// True if there are no names.
    package var isEmpty: Bool { names.isEmpty }
    /// The number of names.
    package var count: Int { names.count }

    /// Adds the name in `range` of `bytes`, in any case.
    package mutating func insert(_ bytes: Span<UInt8>, at range: Range<Int>) {
        var name: [UInt8] = []
        name.reserveCapacity(range.count)
        for index in range { name.append(ASCII.lowercased(bytes[index])) }
        insert(name)
    }

    /// Adds every name of `others`.
    package mutating func formUnion(_ others: FieldNames) {
        for name in others.names { insert(name) }
    }

    private mutating func insert(_ name: [UInt8]) {
        let place = names.firstIndex { !$0.lexicographicallyPrecedes(name) } ?? names.endIndex
        guard place == names.endIndex || names[place] != name else { return }
        names.insert(name, at: place)
    }

    /// Returns true if the set holds the name in `range` of `bytes`, in any case.
    package func contains(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        names.contains { bytes.matchesFieldName(at: range, of: $0) }
    }

    /// Returns true if the set holds this name, written in lower case.
    package func contains(_ name: StaticString) -> Bool {
        let text = Array(name.description.utf8)
        return contains(text.span, at: 0..<text.count)
    }
}
