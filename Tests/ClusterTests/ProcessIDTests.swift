import Cluster
import Ground
import Testing

@Suite("Process ids")
struct ProcessIDTests {
    @Test("Equal seeds draw equal ids, and each draw gives another")
    func drawn() {
        var dice = SplitMix64(seed: 1)
        var same = SplitMix64(seed: 1)
        let first = ProcessID(using: &dice)
        #expect(first == ProcessID(using: &same))
        #expect(first != ProcessID(using: &dice))
    }

    @Test("An id is written as 32 hexadecimal digits, with leading zeros")
    func written() {
        struct Fixed: RandomNumberGenerator {
            var words: [UInt64]
            mutating func next() -> UInt64 { words.removeFirst() }
        }
        var words = Fixed(words: [0xAB, .max])
        #expect(ProcessID(using: &words).description == "00000000000000abffffffffffffffff")
    }
}
