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
    package struct Item: Hashable, Sendable {
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

    /// Places in `items`, which are the newest first, of those that go, in descending order: the
    /// least used first, and of those the oldest; never the newest of all.
    package func surplus(of items: [Item]) -> [Int] {
        var count = items.count
        var bytes = items.reduce(0) { $0 + $1.bytes }
        var keyBytes = items.reduce(0) { $0 + $1.keyBytes }
        func fits() -> Bool {
            count <= countMax && bytes <= bytesMax && keyBytes <= Self.keyBytesMax
        }
        guard !fits() else { return [] }
        let order = items.indices.dropFirst().sorted {
            (items[$0].frequency, $1) < (items[$1].frequency, $0)
        }
        var gone: [Int] = []
        for place in order where !fits() {
            gone.append(place)
            count -= 1
            bytes -= items[place].bytes
            keyBytes -= items[place].keyBytes
        }
        return gone.sorted(by: >)
    }
}
