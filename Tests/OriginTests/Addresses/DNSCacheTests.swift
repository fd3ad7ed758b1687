import Ground
import Origin
import Testing

@Suite("The DNS cache")
struct DNSCacheTests {
    let one = IPAddress.v4(1)
    let two = IPAddress.v4(2)

    private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    private func cache(names: Int = 100) -> DNSCache {
        DNSCache(
            settings: DNSCache.Settings(
                lifetime: .seconds(30), failureLifetime: .seconds(2), namesMax: names))
    }

    @Test("Addresses are cached for their lifetime, unknown names for a shorter one")
    func lifetimes() {
        var cache = cache()
        cache.storeAddresses([one, two], of: "a", now: at(0))
        cache.storeNotFound("b", now: at(0))
        #expect(cache.lookup("a", now: at(29)) == .addresses([one, two]))
        #expect(cache.lookup("a", now: at(30)) == nil)
        #expect(cache.lookup("b", now: at(1)) == .notFound)
        #expect(cache.lookup("b", now: at(2)) == nil)
        #expect(cache.lookup("c", now: at(0)) == nil)
    }

    @Test("While the resolver fails, expired addresses are used for up to a day")
    func lastKnown() {
        var cache = cache()
        cache.storeAddresses([one], of: "a", now: at(0))
        cache.storeNotFound("b", now: at(0))
        #expect(cache.staleAddresses("a", now: at(3600)) == [one])
        #expect(cache.staleAddresses("a", now: at(30 + 86_400)) == nil)
        #expect(cache.staleAddresses("b", now: at(0)) == nil)
    }

    @Test("Addresses that refused a connection are looked up again")
    func distrusted() {
        var cache = cache()
        cache.storeAddresses([one], of: "a", now: at(0))
        cache.expire("a", now: at(1))
        #expect(cache.lookup("a", now: at(1)) == nil)
        #expect(cache.staleAddresses("a", now: at(1)) == [one])
    }

    @Test("At the limit the names looked up longest ago are dropped")
    func namesMax() {
        var cache = cache(names: 10)
        for number in 0..<10 {
            cache.storeAddresses([one], of: "\(number)", now: at(Int64(number)))
        }
        _ = cache.lookup("0", now: at(11))
        cache.storeAddresses([one], of: "new", now: at(12))
        #expect(cache.count == 9)
        #expect(cache.lookup("0", now: at(12)) != nil && cache.lookup("new", now: at(12)) != nil)
        #expect(cache.lookup("1", now: at(12)) == nil && cache.lookup("2", now: at(12)) == nil)
    }
}
