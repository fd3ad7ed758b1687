import Ground
import Testing
import Tiers

@Suite struct DiskIndexTests {
    private static let digest = EntryDigest(first: 7, second: 11)
    private static let place = DiskLocation(segment: 3, offsetUnits: 500)
    private static let elsewhere = DiskLocation(segment: 4, offsetUnits: 500)
    private static let entry = DiskEntry(
        location: place, lengthUnits: 20, lastAccess: 1_000, accessCount: 2, flags: .inMain)

    private static func index() -> DiskIndex {
        var index = DiskIndex(key0: 1, key1: 2)
        index.insert(digest, entry)
        return index
    }

    @Test("An empty index finds, removes and touches nothing")
    func empty() {
        var index = DiskIndex(key0: 1, key1: 2)
        let found = index.find(Self.digest)
        #expect(found == nil)
        let removed = index.remove(Self.digest, ifAt: Self.place)
        let touched = index.touch(Self.digest, count: 1, at: 1)
        #expect(!removed && !touched)
        let count = index.count
        #expect(count == 0)
    }

    @Test("An insertion returns the entry that it replaces")
    func replaces() {
        var index = DiskIndex(key0: 1, key1: 2)
        let newer = DiskEntry(location: Self.elsewhere, lengthUnits: 1, lastAccess: 0)
        let first = index.insert(Self.digest, Self.entry)
        let second = index.insert(Self.digest, newer)
        #expect(first == nil && second == Self.entry)
        let found = index.find(Self.digest)
        let count = index.count
        #expect(found == newer && count == 1)
    }

    @Test("Removing an older record does not remove the newer one")
    func removalIsHeldToTheLocation() {
        var index = Self.index()
        let wrong = index.remove(Self.digest, ifAt: Self.elsewhere)
        let stillThere = index.find(Self.digest)
        #expect(!wrong && stillThere == Self.entry)
        let right = index.remove(Self.digest, ifAt: Self.place)
        let gone = index.find(Self.digest)
        #expect(right && gone == nil)
    }

    @Test(
        "Touches add up to the maximum count, and the latest access is kept",
        arguments: [
            (count: 1, at: 2_000, countAfter: 3, lastAfter: 2_000),
            (count: 0, at: 999, countAfter: 2, lastAfter: 1_000),
            (count: 253, at: 1_000, countAfter: 255, lastAfter: 1_000),
            (count: 254, at: .max, countAfter: 255, lastAfter: .max),
            (count: .max, at: 0, countAfter: 255, lastAfter: 1_000),
        ] as [(count: UInt32, at: UInt32, countAfter: UInt8, lastAfter: UInt32)])
    func touches(count: UInt32, at: UInt32, countAfter: UInt8, lastAfter: UInt32) {
        var index = Self.index()
        let touched = index.touch(Self.digest, count: count, at: at)
        let found = index.find(Self.digest)
        #expect(touched && found?.accessCount == countAfter && found?.lastAccess == lastAfter)
        #expect(found?.flags == .inMain && found?.location == Self.place)
    }

    @Test("An entry keeps the extreme values of all its fields, in 16 bytes")
    func packing() {
        #expect(MemoryLayout<DiskEntry>.size == 16)
        for segment in [0, .max] as [UInt16] {
            for units in [0, DiskEntry.unitsMax] {
                for seconds in [0, .max] as [UInt32] {
                    for small in [0, .max] as [UInt8] {
                        let location = DiskLocation(segment: segment, offsetUnits: units)
                        var entry = DiskEntry(
                            location: location, lengthUnits: DiskEntry.unitsMax - units,
                            lastAccess: seconds, accessCount: small,
                            flags: DiskEntry.Flags(rawValue: ~small))
                        #expect(entry.location == location)
                        #expect(entry.lengthUnits == DiskEntry.unitsMax - units)
                        #expect(entry.lastAccess == seconds && entry.accessCount == small)
                        #expect(entry.flags.rawValue == ~small)
                        let before = entry
                        entry.lastAccess = ~seconds
                        entry.accessCount = ~small
                        #expect(entry.lengthUnits == DiskEntry.unitsMax - units)
                        entry.lastAccess = seconds
                        entry.accessCount = small
                        #expect(entry == before)
                    }
                }
            }
        }
    }
}
