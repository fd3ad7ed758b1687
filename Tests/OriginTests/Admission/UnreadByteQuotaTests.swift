import Ground
import Origin
import Testing

@Suite("Quota of bytes that no client reads")
struct UnreadByteQuotaTests {
    private let client = QuotaHolder.client(.v4(0x0808_0808))
    private let other = QuotaHolder.client(.v4(0x0808_0809))
    private let start = Instant(nanoseconds: 1_000_000_000_000)

    @Test("A client has a quota of bytes a minute, which its last request may exceed")
    func limit() {
        var allowance = UnreadByteQuota(bytesMax: 100)
        #expect(allowance.consume(99, for: client, now: start) == true)
        #expect(allowance.consume(50, for: client, now: start) == true)
        #expect(!allowance.hasRemaining(for: client, now: start))
        #expect(allowance.consume(1, for: client, now: start + .seconds(59)) == false)
        #expect(allowance.consume(1, for: client, now: start + .seconds(60)) == true)
    }

    @Test("Other clients, and requests without a client, have quotas of their own")
    func others() {
        var allowance = UnreadByteQuota(bytesMax: 100)
        #expect(allowance.consume(.max, for: client, now: start) == true)
        #expect(allowance.consume(100, for: other, now: start) == true)
        #expect(allowance.consume(100, for: nil, now: start) == true)
        #expect(!allowance.hasRemaining(for: nil, now: start))
    }

    @Test("A quota of zero allows nothing; a higher one applies at once")
    func changed() {
        var allowance = UnreadByteQuota(bytesMax: 0)
        #expect(!allowance.hasRemaining(for: client, now: start))
        #expect(allowance.consume(0, for: client, now: start) == true)
        allowance.bytesMax = 10
        #expect(allowance.consume(10, for: client, now: start) == true)
        #expect(!allowance.hasRemaining(for: client, now: start))
    }

    @Test("Beyond the limit on clients, the rest share the quota of requests without a client")
    func bounded() {
        var allowance = UnreadByteQuota(bytesMax: 100, clientsMax: 2)
        #expect(allowance.consume(100, for: nil, now: start) == true)
        #expect(allowance.consume(1, for: client, now: start) == true)
        #expect(!allowance.hasRemaining(for: other, now: start))
        #expect(allowance.hasRemaining(for: client, now: start))
    }
}
