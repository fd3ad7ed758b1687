import Ground
import Origin
import Testing

@Suite("What is remembered of names")
struct NameCacheTests {
    let one = IPAddress.v4(1)
    let two = IPAddress.v4(2)

    private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    private func cache(names: Int = 100) -> NameCache {
        NameCache(
            settings: NameCache.Settings(
                lifetime: .seconds(30), failureLifetime: .seconds(2), namesMax: names))
    }

    @Test("Addresses are used for their time, and being not found for a shorter one")
    func lifetimes() {
        var cache = cache()
        cache.found([one, two], of: "a", now: at(0))
        cache.notFound("b", now: at(0))
        #expect(cache.find("a", now: at(29)) == .addresses([one, two]))
        #expect(cache.find("a", now: at(30)) == nil)
        #expect(cache.find("b", now: at(1)) == .notFound)
        #expect(cache.find("b", now: at(2)) == nil)
        #expect(cache.find("c", now: at(0)) == nil)
    }

    @Test("Expired addresses help while the resolver gives no answer, for a day")
    func lastKnown() {
        var cache = cache()
        cache.found([one], of: "a", now: at(0))
        cache.notFound("b", now: at(0))
        #expect(cache.lastKnown("a", now: at(3600)) == [one])
        #expect(cache.lastKnown("a", now: at(30 + 86_400)) == nil)
        #expect(cache.lastKnown("b", now: at(0)) == nil)
    }

    @Test("Addresses that took no connection are asked for anew")
    func distrusted() {
        var cache = cache()
        cache.found([one], of: "a", now: at(0))
        cache.distrust("a", now: at(1))
        #expect(cache.find("a", now: at(1)) == nil)
        #expect(cache.lastKnown("a", now: at(1)) == [one])
    }

    @Test("Of too many names those asked for longest ago go first")
    func namesMax() {
        var cache = cache(names: 10)
        for number in 0..<10 { cache.found([one], of: "\(number)", now: at(Int64(number))) }
        _ = cache.find("0", now: at(11))
        cache.found([one], of: "new", now: at(12))
        #expect(cache.count == 9)
        #expect(cache.find("0", now: at(12)) != nil && cache.find("new", now: at(12)) != nil)
        #expect(cache.find("1", now: at(12)) == nil && cache.find("2", now: at(12)) == nil)
    }
}
