import Ground
import Origin
import Testing

@Suite("Shares of what is limited")
struct ShareTableTests {
    private let client = ShareHolder.client(.v4(0x0808_0808))
    private let other = ShareHolder.client(.v4(0x0808_0809))

    private func table(_ placesMax: Int = 8) -> ShareTable {
        ShareTable(
            ShareTable.Limits(
                placesMax: placesMax, clientPercent: 25, originPercent: 75, uploadPercent: 50))
    }

    @Test("A holder has its share at most, and others go on")
    func share() {
        var table = table()
        for _ in 1...2 {
            #expect(table.obstacle(to: [client]) == nil)
            table.take([client])
        }
        #expect(table.obstacle(to: [client]) == .share)
        #expect(table.obstacle(to: [other]) == nil)
        table.giveBack([client])
        #expect(table.obstacle(to: [client]) == nil)
    }

    @Test("Who belongs to several needs room with each of them")
    func several() {
        var table = table()
        let site = ShareHolder.site("a.example")
        for number in 0..<6 {
            let holders = [site, .client(.v4(UInt32(number)))]
            #expect(table.obstacle(to: holders) == nil)
            table.take(holders)
        }
        #expect(table.obstacle(to: [site, other]) == .share)
        #expect(table.obstacle(to: [other]) == nil)
        for number in 0..<6 { table.giveBack([site, .client(.v4(UInt32(number)))]) }
        #expect(table.count == 0)
        #expect(table.obstacle(to: [site, other]) == nil)
    }

    @Test("Without holders only the places count, of which a share is one at least")
    func places() {
        var table = table(2)
        table.take([client])
        #expect(table.obstacle(to: [client]) == .share)
        table.take([])
        #expect(table.obstacle(to: []) == .places)
        #expect(table.hasShare(for: [other]))
    }

    @Test("A share of all is none: what is wanting is a place")
    func everything() {
        var table = ShareTable(ShareTable.Limits(placesMax: 2))
        for _ in 1...2 { table.take([client]) }
        #expect(table.obstacle(to: [client]) == .places)
    }

    @Test(
        "Who owns an origin is told by the end of its name",
        arguments: [
            ("a.b.example.com", "example.com"), ("example.com", "example.com"),
            ("localhost", "localhost"), ("a.example.co.uk", "example.co.uk"),
            ("a.b.example.de", "example.de"), ("com.au", "com.au"),
            ("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::1"),
        ])
    func owner(host: String, name: String) {
        let holder = ShareHolder(ownerOf: OriginAuthority(host: host, port: 80))
        #expect(holder == .origin(name))
    }

    @Test("A client is its address, of IPv6 the /64; this machine is none")
    func clients() {
        func holder(_ text: String) -> ShareHolder? {
            ShareHolder(clientAt: IPAddress(text))
        }
        #expect(holder("2001:db8::1") == holder("2001:db8::ffff:1"))
        #expect(holder("2001:db8::1") != holder("2001:db8:0:1::1"))
        #expect(holder("192.0.2.1") != holder("192.0.2.2"))
        #expect(holder("::ffff:192.0.2.1") == holder("192.0.2.1"))
        #expect(holder("127.0.0.1") == nil && holder("::1") == nil)
        #expect(ShareHolder(clientAt: nil) == nil)
    }
}
