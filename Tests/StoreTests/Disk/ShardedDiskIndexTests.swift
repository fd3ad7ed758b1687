import Ground
import Store
import Testing
import Tiers

@Suite("Locations of records in the index")
struct ShardedDiskIndexTests {
    private func entry(_ unit: UInt32, lastAccess: UInt32 = 5) -> DiskEntry {
        DiskEntry(
            location: DiskLocation(segment: 3, offsetUnits: unit), lengthUnits: 4,
            lastAccess: lastAccess)
    }

    @Test("A stale record moves nothing; a current one moves and keeps its last access")
    func moves() {
        let shards = ShardedDiskIndex(key0: 1, key1: 2)
        let digest = EntryDigest(first: 7, second: 8)
        shards.insert(digest, entry(64, lastAccess: 9))
        let other = shards.move(digest, from: entry(128).location, to: entry(192))
        #expect(!other && shards.find(digest)?.location == entry(64).location)
        let own = shards.move(digest, from: entry(64).location, to: entry(192))
        #expect(own && shards.find(digest)?.location == entry(192).location)
        #expect(shards.find(digest)?.lastAccess == 9)
        #expect(shards.count == 1)
    }

    @Test("A promoted entry stays in the main queue when it is stored again")
    func staysInItsQueue() throws {
        let rig = try LogRig(segments: 6, seed: 3)
        try rig.store(Answer(1, version: 1, bytes: 5_000))
        let digest = Answer.name(1).digest
        let isInMain = { try rig.log().view.shards.find(digest)?.flags.contains(.inMain) }
        #expect(try isInMain() == false)
        for number in 100..<120 {
            try rig.touch(1, count: 3)
            try rig.store(Answer(number, version: 1, bytes: 300_000))
        }
        #expect(try isInMain() == true)
        try rig.store(Answer(1, version: 2, bytes: 5_000))
        #expect(try isInMain() == true)
    }
}
