import Cluster
import Ground
import Testing

@Suite("The id of one run of a node")
struct ProcessIDTests {
    @Test("the same dice draw the same id, and draw another one next")
    func drawn() {
        var dice = SplitMix64(seed: 1)
        var same = SplitMix64(seed: 1)
        let first = ProcessID(using: &dice)
        #expect(first == ProcessID(using: &same))
        #expect(first != ProcessID(using: &dice))
    }

    @Test("an id is written as 32 hexadecimal digits, leading zeros included")
    func written() {
        struct Fixed: RandomNumberGenerator {
            var words: [UInt64]
            mutating func next() -> UInt64 { words.removeFirst() }
        }
        var words = Fixed(words: [0xAB, .max])
        #expect(ProcessID(using: &words).description == "00000000000000abffffffffffffffff")
    }
}
