package import Ground

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

/// Which of several stored answers that all match a request is used (RFC 9111 §4.1).
package struct VariantSelection: Hashable, Sendable {
    /// The number that ``add(number:date:hasVary:)`` was given with the answer to be used; nil
    /// before the first.
    package private(set) var index: Int?
    private var date = WallTime(seconds: .min)
    private var hasVary = false

    package init() {}

    /// Adds an answer: its Date, and whether it has a Vary that names a field.
    ///
    /// The most recent one wins, but one without Vary only over its like; of two of one second the
    /// one that was added first.
    package mutating func add(index: Int, date: WallTime, hasVary: Bool) {
        let isBetter = hasVary == self.hasVary ? date > self.date : hasVary
        guard self.index == nil || isBetter else { return }
        self.index = index
        self.date = date
        self.hasVary = hasVary
    }
}

/// What the variants of one URL may take together: whoever makes up values for a field that Vary
/// nominates gets an answer each time, and takes nothing from other URLs.
package struct VariantQuota: Hashable, Sendable {
    /// Variants at most.
    package var countMax: Int
    /// Bytes of memory that those take together which memory holds.
    package var bytesMax: Int
    /// Bytes of all their keys, which stand in the URL's ``VariantIndex`` entry: that is written
    /// again for each of them.
    package static let keyBytesMax = 16 << 10

    package init(countMax: Int, bytesMax: Int) {
        self.countMax = countMax
        self.bytesMax = bytesMax
    }

    /// One variant, as far as it counts.
    package struct VariantUsage: Hashable, Sendable {
        package var keyBytes: Int
        /// Bytes of memory; 0 if memory does not hold it.
        package var bytes: Int
        /// How often it was asked for of late; 0 if memory does not hold it.
        package var frequency: UInt8

        package init(keyBytes: Int, bytes: Int, frequency: UInt8) {
            self.keyBytes = keyBytes
            self.bytes = bytes
            self.frequency = frequency
        }
    }

    /// True if ``surplus(of:)`` is to be asked, now that one of `newestBytes` bytes has come.
    ///
    /// Small ones are not counted one by one: all that may stay take a quarter of ``bytesMax``
    /// together, which ``surplus(of:)`` leaves to them.
    package func needsCheck(count: Int, keyBytes: Int, newestBytes: Int) -> Bool {
        count > countMax || keyBytes > Self.keyBytesMax
            || newestBytes > bytesMax / 4 / max(1, countMax)
    }

    /// Places in `items`, which are the newest first, of those that go, in descending order: the
    /// least used first, and of those the oldest; never the newest of all.
    ///
    /// Where too many are there an eighth goes with them, so that the next are not due at once.
    package func indexesToEvict(of items: [VariantUsage]) -> [Int] {
        var count = items.count
        var bytes = items.reduce(0) { $0 + $1.bytes }
        var keyBytes = items.reduce(0) { $0 + $1.keyBytes }
        func fits(leaving room: (Int) -> Int) -> Bool {
            count <= countMax - room(countMax) && bytes <= bytesMax - bytesMax / 4
                && keyBytes <= Self.keyBytesMax - room(Self.keyBytesMax)
        }
        guard !fits(leaving: { _ in 0 }) else { return [] }
        let order = items.indices.dropFirst().sorted {
            (items[$0].frequency, $1) < (items[$1].frequency, $0)
        }
        var gone: [Int] = []
        for place in order where !fits(leaving: { $0 / 8 }) {
            gone.append(place)
            count -= 1
            bytes -= items[place].bytes
            keyBytes -= items[place].keyBytes
        }
        return gone.sorted(by: >)
    }
}
