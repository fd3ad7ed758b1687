/// An estimate of recent request frequencies in a fixed number of bytes, never too low: the sketch
/// of TinyLFU (Einziger, Friedman, Manes, 2017).
///
/// Each key has four counters of four bits, shared with other keys; the estimate is the least of
/// them. When ten uses per word are counted, all counters and the count of uses are halved, so that
/// former popularity is forgotten.
package struct FrequencySketch: Sendable {
    /// The counters, 16 per word.
    private var words: [UInt64]
    private var uses = 0

    /// The value at which counters saturate.
    package static let frequencyMax: UInt8 = 15
    private static let rows = 4
    private static let usesPerWord = 10

    /// Creates an empty sketch of `count` words of 8 bytes, a power of two.
    ///
    /// It distinguishes about as many keys as it has words.
    package init(words count: Int) {
        precondition(count > 0 && count & (count - 1) == 0, "a sketch of \(count) words")
        words = Array(repeating: 0, count: count)
    }

    /// Records a use of the key with this hash and returns its frequency, including this use, at
    /// most ``frequencyMax``.
    package mutating func increment(_ hash: UInt64) -> UInt8 {
        uses += 1
        if uses >= words.count * Self.usesPerWord { age() }
        var least = Self.frequencyMax
        for row in 0..<Self.rows {
            let (word, shift) = counterPosition(hash, row)
            let count = UInt8(truncatingIfNeeded: words[word] >> shift & 0xF)
            guard count < Self.frequencyMax else { continue }
            words[word] += 1 << shift
            least = min(least, count + 1)
        }
        return least
    }

    /// Returns the frequency of the key with this hash; never less than its uses since the last
    /// halving, up to ``frequencyMax``.
    package func frequency(_ hash: UInt64) -> UInt8 {
        (0..<Self.rows).reduce(Self.frequencyMax) { least, row in
            let (word, shift) = counterPosition(hash, row)
            return min(least, UInt8(truncatingIfNeeded: words[word] >> shift & 0xF))
        }
    }

    /// Halves every counter and the count of uses.
    private mutating func age() {
        for index in words.indices { words[index] = words[index] >> 1 & 0x7777_7777_7777_7777 }
        uses /= 2
    }

    private func counterPosition(_ hash: UInt64, _ row: Int) -> (word: Int, shift: UInt64) {
        // Each row rotates the hash by a different number of bits and multiplies it.
        let turned = hash >> UInt64(row * 16) | hash << (UInt64(64 - row * 16) % 64)
        let mixed = (turned ^ UInt64(row)) &* 0x9E37_79B9_7F4A_7C15
        let word = Int(truncatingIfNeeded: mixed >> 32) & (words.count - 1)
        return (word, UInt64(row * 4) + (mixed >> 28 & 0x3) * 16)
    }
}
