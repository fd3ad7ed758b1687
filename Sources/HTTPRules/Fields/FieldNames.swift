import Ground

/// A set of field names of any kind, in lower case and in the order of their bytes (RFC 9110 §5.1).
///
/// What lists of names come to: Vary, Connection, `no-cache="…"`, `private="…"`. For the few names
/// that Nuthatch acts on there is ``FieldSet``.
package struct FieldNames: Hashable, Sendable {
    /// In lower case, each once, the least first.
    package private(set) var names: [[UInt8]] = []

    package init() {}

    /// The set of these names, in whichever case they are written.
    package init(_ names: [String]) {
        for name in names {
            let bytes = Array(name.utf8)
            insert(bytes.span, at: 0..<bytes.count)
        }
    }

    /// The set of these names, which are in lower case and ascend.
    init(ascending names: [[UInt8]]) {
        self.names = names
    }

    package var isEmpty: Bool { names.isEmpty }
    package var count: Int { names.count }

    /// Adds the name in `range` of `bytes`.
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

    /// True if the name in `range` of `bytes` is one of them, without regard to case.
    package func contains(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        names.contains { name in
            guard name.count == range.count else { return false }
            for offset in name.indices
            where ASCII.lowercased(bytes[range.lowerBound + offset]) != name[offset] {
                return false
            }
            return true
        }
    }

    /// True if this name, written in lower case, is one of them.
    package func contains(_ name: StaticString) -> Bool {
        let text = Array(name.description.utf8)
        return contains(text.span, at: 0..<text.count)
    }
}
