import Ground
import HTTPRules
import Testing

@Suite("Limits on the variants of one URL")
struct VariantQuotaTests {
    private typealias Item = VariantQuota.VariantUsage

    private func items(_ frequencies: [UInt8], bytes: Int = 100, keyBytes: Int = 50) -> [Item] {
        frequencies.map { Item(keyBytes: keyBytes, bytes: bytes, frequency: $0) }
    }

    private let few = VariantQuota(countMax: 4, bytesMax: 10_000)

    @Test("Variants within the limits stay")
    func fits() {
        #expect(few.indexesToEvict(of: []).isEmpty)
        #expect(few.indexesToEvict(of: items([0, 0, 0, 0])).isEmpty)
    }

    @Test("The least used is removed, of these the oldest, and never the new one")
    func order() {
        #expect(few.indexesToEvict(of: items([0, 3, 1, 1, 9])) == [3])
        #expect(few.indexesToEvict(of: items([0, 3, 1, 1, 9, 0])) == [5, 3])
        #expect(few.indexesToEvict(of: items([0, 5, 5, 5, 5])) == [4])
        let one = VariantQuota(countMax: 1, bytesMax: 10)
        #expect(one.indexesToEvict(of: items([0, 9, 9])) == [2, 1])
        #expect(one.indexesToEvict(of: items([0])).isEmpty)
    }

    @Test("The bytes in memory are limited too; variants that are not in memory cost none")
    func bytes() {
        let small = VariantQuota(countMax: 100, bytesMax: 400)
        #expect(small.indexesToEvict(of: items([0, 2, 1, 3])) == [2])
        #expect(small.indexesToEvict(of: items([0, 2, 1, 3, 4])) == [2, 1])
        let absent = items([0, 2, 2]) + items([0, 0, 0], bytes: 0)
        #expect(small.indexesToEvict(of: absent).isEmpty)
        #expect(small.indexesToEvict(of: items([0, 4], bytes: 1_000)) == [1])
    }

    @Test("Long field values leave space for few variants")
    func keys() {
        let many = VariantQuota(countMax: 1_000, bytesMax: .max)
        let gone = many.indexesToEvict(of: items(Array(repeating: 1, count: 10), keyBytes: 4_096))
        #expect(gone == [9, 8, 7, 6, 5, 4, 3])
    }

    @Test("A removal frees an eighth of the limit")
    func room() {
        let many = VariantQuota(countMax: 16, bytesMax: .max)
        #expect(many.indexesToEvict(of: items(Array(repeating: 1, count: 16))).isEmpty)
        #expect(many.indexesToEvict(of: items(Array(repeating: 1, count: 17))) == [16, 15, 14])
    }

    @Test("Checks where they are due keep the variants within their limits")
    func due() {
        var dice = SplitMix64(seed: 1)
        let quota = VariantQuota(countMax: 16, bytesMax: 100_000)
        var items: [Item] = []
        var (looks, arrivals) = (0, 0)
        for _ in 0..<5_000 {
            let bytes = Int.random(
                in: 1...(Bool.random(using: &dice) ? 1_500 : 40_000), using: &dice)
            items.insert(Item(keyBytes: 50, bytes: bytes, frequency: 1), at: 0)
            arrivals += 1
            if quota.needsCheck(count: items.count, keyBytes: items.count * 50, newestBytes: bytes)
            {
                looks += 1
                for place in quota.indexesToEvict(of: items) { items.remove(at: place) }
            }
            #expect(items.count <= 16 && items.reduce(0) { $0 + $1.bytes } <= 100_000)
        }
        #expect(looks < arrivals)
    }

    @Test("About one in nine small variants requires a check")
    func seldom() {
        let quota = VariantQuota(countMax: 64, bytesMax: 1 << 26)
        var items: [Item] = []
        var looks = 0
        for _ in 0..<1_064 {
            items.insert(Item(keyBytes: 50, bytes: 1_000, frequency: 1), at: 0)
            guard
                quota.needsCheck(count: items.count, keyBytes: items.count * 50, newestBytes: 1_000)
            else { continue }
            looks += 1
            for place in quota.indexesToEvict(of: items) { items.remove(at: place) }
        }
        #expect(looks == 112)
    }
}
