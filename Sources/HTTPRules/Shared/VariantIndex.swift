import Ground

/// What stands under the key of a URL whose answers vary: the sets of field names that its answers
/// nominated (RFC 9111 §4.1).
///
/// Each answer stands under a ``VariantKey`` of one set. Without the index, or with one of another
/// generation, none of them is found.
package struct VariantIndex: Hashable, Sendable {
    /// Sets at most; the one that was longest not added makes room.
    package static let setsMax = 4
    /// Names in a set at most.
    package static let namesMax = 16
    /// Bytes of a name at most.
    package static let nameBytesMax = 255

    /// A number that no earlier index of the same key had.
    package let generation: UInt64
    /// The set added last comes first; a set without names is of answers without Vary.
    package private(set) var sets: [FieldNames] = []

    /// An index without sets; `generation` is thrown by the caller.
    package init(generation: UInt64) {
        self.generation = generation
    }

    /// True if a set of these names can be in an index.
    package static func canHold(_ names: FieldNames) -> Bool {
        names.count <= namesMax
            && names.names.allSatisfy { isName($0.span, at: 0..<$0.count) }
    }

    /// This index with `names` as its first set.
    ///
    /// Without them if not ``holds(_:)``; ``VaryNames/isSelectable`` says the same.
    package func adding(_ names: FieldNames) -> VariantIndex {
        guard sets.first != names, Self.canHold(names) else { return self }
        var index = self
        index.sets.removeAll { $0 == names }
        index.sets.insert(names, at: 0)
        if index.sets.count > Self.setsMax { index.sets.removeLast() }
        return index
    }

    /// A token without capitals, of at most ``nameBytesMax`` bytes.
    private static func isName(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        guard 1...nameBytesMax ~= range.count else { return false }
        for index in range {
            let byte = bytes[index]
            guard ByteSet.token.contains(byte), ASCII.lowercased(byte) == byte else { return false }
        }
        return true
    }
}

/// The bytes of an index: `V1`, the generation (8 bytes, the lowest first), the number of sets, and
/// of each set the number of names, each a length of one byte and the name in lower case.
///
/// There is one spelling of an index only: names ascend in a set, and no set comes twice.
extension VariantIndex {
    private static let magic: [UInt8] = [UInt8(ascii: "V"), UInt8(ascii: "1")]

    /// Appends the index as bytes.
    package func append(to bytes: inout [UInt8]) {
        bytes += Self.magic
        bytes.appendLittle(generation)
        bytes.append(UInt8(sets.count))
        for set in sets {
            bytes.append(UInt8(set.count))
            for name in set.names {
                bytes.append(UInt8(name.count))
                bytes += name
            }
        }
    }

    /// The index that is the whole of `range`; nil if the bytes are none.
    package init?(_ bytes: Span<UInt8>, at range: Range<Int>) {
        let bytes = bytes.extracting(range)
        guard bytes.count > 10, bytes[0] == Self.magic[0], bytes[1] == Self.magic[1],
            Int(bytes[10]) <= Self.setsMax
        else { return nil }
        generation = bytes.little64(at: 2)
        var cursor = 11
        for _ in 0..<bytes[10] {
            guard let set = Self.set(bytes, &cursor), !sets.contains(set) else { return nil }
            sets.append(set)
        }
        guard cursor == bytes.count else { return nil }
    }

    private static func set(_ bytes: Span<UInt8>, _ cursor: inout Int) -> FieldNames? {
        guard cursor < bytes.count, Int(bytes[cursor]) <= namesMax else { return nil }
        let count = Int(bytes[cursor])
        cursor += 1
        var names: [[UInt8]] = []
        for _ in 0..<count {
            guard cursor < bytes.count else { return nil }
            let name = cursor + 1..<cursor + 1 + Int(bytes[cursor])
            guard name.upperBound <= bytes.count, isName(bytes, at: name) else { return nil }
            let text = bytes.copy(name)
            if let last = names.last, !last.lexicographicallyPrecedes(text) { return nil }
            names.append(text)
            cursor = name.upperBound
        }
        return FieldNames(ascending: names)
    }
}
