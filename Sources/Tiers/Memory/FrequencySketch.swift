/// How often keys were asked for of late, within a fixed number of bytes, never too few: the sketch
/// of TinyLFU (Einziger, Friedman, Manes, 2017).
///
/// Four counters of four bits stand for each key, each shared with others; the least of them is the
/// estimate. When ten times as many uses were counted as there are words, all counters are halved,
/// so that what was popular once is forgotten.
package struct FrequencySketch: Sendable {
    /// 16 counters each.
    private var words: [UInt64]
    private var uses = 0

    /// What a counter stops at.
    package static let frequencyMax: UInt8 = 15
    private static let rows = 4
    private static let usesPerWord = 10

    /// An empty sketch of 8 bytes for each of `words`, a power of two: about as many keys are told
    /// apart.
    package init(words count: Int) {
        precondition(count > 0 && count & (count - 1) == 0, "a sketch of \(count) words")
        words = Array(repeating: 0, count: count)
    }

    /// Notes a use of the key with this hash; how often it was used, this use included.
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

    /// How often the key with this hash was used; never less than it was since the last halving.
    package func frequency(_ hash: UInt64) -> UInt8 {
        (0..<Self.rows).reduce(Self.frequencyMax) { least, row in
            let (word, shift) = counterPosition(hash, row)
            return min(least, UInt8(truncatingIfNeeded: words[word] >> shift & 0xF))
        }
    }

    /// Halves every counter.
    private mutating func age() {
        for index in words.indices { words[index] = words[index] >> 1 & 0x7777_7777_7777_7777 }
        uses /= 2
    }

    private func counterPosition(_ hash: UInt64, _ row: Int) -> (word: Int, shift: UInt64) {
        // Each row sees the hash turned by another number of bits and multiplied anew.
        let turned = hash >> UInt64(row * 16) | hash << (UInt64(64 - row * 16) % 64)
        let mixed = (turned ^ UInt64(row)) &* 0x9E37_79B9_7F4A_7C15
        let word = Int(truncatingIfNeeded: mixed >> 32) & (words.count - 1)
        return (word, UInt64(row * 4) + (mixed >> 28 & 0x3) * 16)
    }
}
