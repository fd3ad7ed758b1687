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
