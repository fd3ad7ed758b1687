import Ground
import Origin
import Testing

@Suite("Quotas on a limited resource")
struct QuotaTableTests {
    private let client = QuotaHolder.client(.v4(0x0808_0808))
    private let other = QuotaHolder.client(.v4(0x0808_0809))

    private func table(_ placesMax: Int = 8) -> QuotaTable {
        QuotaTable(
            QuotaTable.Limits(
                slotsMax: placesMax, clientPercent: 25, originPercent: 75, uploadPercent: 50))
    }

    @Test("A holder is limited to its quota, and others are not affected")
    func share() {
        var table = table()
        for _ in 1...2 {
            #expect(table.exhaustion(to: [client]) == nil)
            table.acquire([client])
        }
        #expect(table.exhaustion(to: [client]) == .quota)
        #expect(table.exhaustion(to: [other]) == nil)
        table.release([client])
        #expect(table.exhaustion(to: [client]) == nil)
    }

    @Test("A request with several holders needs quota for each")
    func several() {
        var table = table()
        let site = QuotaHolder.site("a.example")
        for number in 0..<6 {
            let holders = [site, .client(.v4(UInt32(number)))]
            #expect(table.exhaustion(to: holders) == nil)
            table.acquire(holders)
        }
        #expect(table.exhaustion(to: [site, other]) == .quota)
        #expect(table.exhaustion(to: [other]) == nil)
        for number in 0..<6 { table.release([site, .client(.v4(UInt32(number)))]) }
        #expect(table.count == 0)
        #expect(table.exhaustion(to: [site, other]) == nil)
    }

    @Test("Without holders only the capacity counts; a quota is at least one")
    func places() {
        var table = table(2)
        table.acquire([client])
        #expect(table.exhaustion(to: [client]) == .quota)
        table.acquire([])
        #expect(table.exhaustion(to: []) == .capacity)
        #expect(table.hasQuota(for: [other]))
    }

    @Test("With a quota of everything, only capacity is exhausted")
    func everything() {
        var table = QuotaTable(QuotaTable.Limits(slotsMax: 2))
        for _ in 1...2 { table.acquire([client]) }
        #expect(table.exhaustion(to: [client]) == .capacity)
    }

    @Test(
        "The owner of an origin is the last labels of its name",
        arguments: [
            ("a.b.example.com", "example.com"), ("example.com", "example.com"),
            ("localhost", "localhost"), ("a.example.co.uk", "example.co.uk"),
            ("a.b.example.de", "example.de"), ("com.au", "com.au"),
            ("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::1"),
        ])
    func owner(host: String, name: String) {
        let holder = QuotaHolder(ownerOf: OriginAuthority(host: host, port: 80))
        #expect(holder == .origin(name))
    }

    @Test("A client is its IPv4 address or IPv6 /64; loopback is none")
    func clients() {
        func holder(_ text: String) -> QuotaHolder? {
            QuotaHolder(clientAt: IPAddress(text))
        }
        #expect(holder("2001:db8::1") == holder("2001:db8::ffff:1"))
        #expect(holder("2001:db8::1") != holder("2001:db8:0:1::1"))
        #expect(holder("192.0.2.1") != holder("192.0.2.2"))
        #expect(holder("::ffff:192.0.2.1") == holder("192.0.2.1"))
        #expect(holder("127.0.0.1") == nil && holder("::1") == nil)
        #expect(QuotaHolder(clientAt: nil) == nil)
    }
}
