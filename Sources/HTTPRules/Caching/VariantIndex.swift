package import Ground

/// The entry under the key of a URL whose responses vary: the sets of field names that the
/// responses' Vary fields nominated (RFC 9111 §4.1).
///
/// Each response is stored under a ``VariantKey`` of one set. Without the index, or with one of
/// another generation, none of them is found.
package struct VariantIndex: Hashable, Sendable {
    /// The maximum number of sets; the least recently added one is dropped.
    package static let setsMax = 4
    /// The maximum number of names in a set.
    package static let namesMax = 16
    /// The maximum length of a name in bytes.
    package static let nameBytesMax = 255

    /// A number that no earlier index of the same key had.
    package let generation: UInt64
    /// The sets, the most recently added first; a set without names is for responses without Vary.
    package private(set) var sets: [FieldNames] = []

    /// Creates an index without sets; the caller draws `generation` at random.
    package init(generation: UInt64) {
        self.generation = generation
    }

    /// Returns true if a set of these names fits into an index.
    package static func canHold(_ names: FieldNames) -> Bool {
        names.count <= namesMax
            && names.names.allSatisfy { isName($0.span, at: 0..<$0.count) }
    }

    /// Returns this index with `names` as its first set, unchanged if not ``canHold(_:)``.
    ///
    /// ``VaryNames/isSelectable`` applies the same limits.
    package func adding(_ names: FieldNames) -> VariantIndex {
        guard sets.first != names, Self.canHold(names) else { return self }
        var index = self
        index.sets.removeAll { $0 == names }
        index.sets.insert(names, at: 0)
        if index.sets.count > Self.setsMax { index.sets.removeLast() }
        return index
    }

    /// Returns true for a token without capitals of at most ``nameBytesMax`` bytes.
    private static func isName(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        guard 1...nameBytesMax ~= range.count else { return false }
        for index in range {
            let byte = bytes[index]
            guard ByteSet.token.contains(byte), ASCII.lowercased(byte) == byte else { return false }
        }
        return true
    }
}

/// The serialised form: `V1`, the generation (8 bytes, little-endian), the number of sets, and for
/// each set the number of names, each with a length of one byte and the name in lower case.
///
/// The encoding is unique: names ascend in a set, and no set comes twice.
extension VariantIndex {
    private static let magic: [UInt8] = [UInt8(ascii: "V"), UInt8(ascii: "1")]

    /// Appends the serialised index.
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

    /// Parses the index that fills `range`; `nil` if the bytes are not one.
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

    /// Parses the set at `cursor` and moves `cursor` to its end; `nil` if the set is malformed.
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

/// The choice among several stored responses that all match a request (RFC 9111 §4.1).
package struct VariantSelection: Hashable, Sendable {
    /// The number passed to ``add(index:date:hasVary:)`` with the chosen response; `nil` before the
    /// first.
    package private(set) var index: Int?
    private var date = WallTime(seconds: .min)
    private var hasVary = false

    /// Creates a selection without responses.
    package init() {}

    /// Adds a stored response.
    ///
    /// A response with Vary is preferred to one without; among equals the most recent by Date wins,
    /// and of two with the same Date the one added first.
    ///
    /// - Parameters:
    ///   - index: the caller's number for the response.
    ///   - date: its Date.
    ///   - hasVary: true if it has a Vary that names a field.
    package mutating func add(index: Int, date: WallTime, hasVary: Bool) {
        let isBetter = hasVary == self.hasVary ? date > self.date : hasVary
        guard self.index == nil || isBetter else { return }
        self.index = index
        self.date = date
        self.hasVary = hasVary
    }
}

/// The limits on all variants of one URL together.
///
/// A client can invent values for a field that Vary nominates and receives a new response each
/// time; the limits keep this from evicting other URLs.
package struct VariantQuota: Hashable, Sendable {
    /// The maximum number of variants.
    package var countMax: Int
    /// The maximum memory of the variants held in memory, in bytes.
    package var bytesMax: Int
    /// The maximum length of all variant keys in bytes.
    ///
    /// The keys are stored in the URL's ``VariantIndex`` entry, which is rewritten for each of
    /// them.
    package static let keyBytesMax = 16 << 10

    /// Creates a quota from its parts; `bytesMax` is in bytes.
    package init(countMax: Int, bytesMax: Int) {
        self.countMax = countMax
        self.bytesMax = bytesMax
    }

    /// The resources that one variant uses.
    package struct VariantUsage: Hashable, Sendable {
        /// The length of the variant's key in bytes.
        package var keyBytes: Int
        /// The memory used in bytes; 0 if the variant is not in memory.
        package var bytes: Int
        /// The recent access frequency; 0 if the variant is not in memory.
        package var frequency: UInt8

        /// Creates the usage of a variant from its parts; sizes are in bytes.
        package init(keyBytes: Int, bytes: Int, frequency: UInt8) {
            self.keyBytes = keyBytes
            self.bytes = bytes
            self.frequency = frequency
        }
    }

    /// Returns true if ``indexesToEvict(of:)`` must be called after a variant of `newestBytes`
    /// bytes was added, with which there are `count` variants with keys of `keyBytes` in all.
    ///
    /// Small variants do not trigger a check: all that may stay use at most a quarter of
    /// ``bytesMax`` together, which ``indexesToEvict(of:)`` reserves for them.
    package func needsCheck(count: Int, keyBytes: Int, newestBytes: Int) -> Bool {
        count > countMax || keyBytes > Self.keyBytesMax
            || newestBytes > bytesMax / 4 / max(1, countMax)
    }

    /// Returns the indexes in `items` of the variants to evict, in descending order.
    ///
    /// The least used are evicted first, among equals the oldest; the newest of all never is. The
    /// variants in memory must fit into three quarters of ``bytesMax``. If any limit is exceeded,
    /// an eighth of the limits on number and keys is freed in addition, so that the next variants
    /// do not trigger another eviction at once.
    ///
    /// - Parameter items: the usage of all variants, the newest first.
    /// - Returns: the indexes in `items`; empty if all variants fit. Index 0 is never among them.
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
