import Ground
import Testing
import Tiers

@Suite("Making space in memory across shards")
struct MemoryAdmissionTests {
    @Test("Only entries above a 16th of the memory are subject to admission")
    func judged() {
        #expect(!MemoryAdmission.isSubjectToAdmission(1 << 20, limitBytes: 16 << 20))
        #expect(MemoryAdmission.isSubjectToAdmission((1 << 20) + 1, limitBytes: 16 << 20))
        #expect(!MemoryAdmission.isSubjectToAdmission(0, limitBytes: 0))
    }

    @Test(
        "The shard with the least inflation among those with half their share evicts",
        arguments: UInt64(1)...20)
    func giver(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let count = Int.random(in: 1...16, using: &dice)
            // The values are around the wrap of the inflation counter.
            let base = UInt64.max - 500
            let shards = (0..<count).map { _ in
                (
                    bytes: Bool.random(using: &dice) ? 0 : Int.random(in: 1...1000, using: &dice),
                    inflation: base &+ UInt64.random(in: 0...1000, using: &dice)
                )
            }
            let bytes = shards.reduce(0) { $0 + $1.bytes }
            let giver = MemoryAdmission.evictingShard(among: count, bytes: bytes) { shards[$0] }
            guard let giver else {
                #expect(bytes == 0)
                continue
            }
            let halfShare = bytes / count / 2
            #expect(shards[giver].bytes > 0 && shards[giver].bytes >= halfShare)
            for shard in shards where shard.bytes > 0 && shard.bytes >= halfShare {
                #expect(!MemoryEvictionPolicy.isBehind(shard.inflation, shards[giver].inflation))
            }
        }
    }
}
