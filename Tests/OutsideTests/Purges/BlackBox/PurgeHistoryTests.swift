import Testing

@Suite("What a client can hold a cluster against")
struct PurgeHistoryTests {
    private func read(_ version: Int, at time: Double, node: Int = 0) -> PurgeHistory.Read {
        PurgeHistory.Read(key: 1, version: version, node: node, askedAt: time)
    }

    @Test("an older version breaks a receipt of all that was there before it was asked for")
    func confirmed() {
        var history = PurgeHistory()
        history.add(.init(key: 1, version: 3, confirmedAt: 10, boundedAt: 25))
        #expect(history.add(read(2, at: 9)) == nil)
        #expect(history.add(read(3, at: 11)) == nil)
        #expect(history.add(read(2, at: 11)) != nil)
    }

    @Test("and a bound, once it has passed")
    func bounded() {
        var history = PurgeHistory()
        history.add(.init(key: 1, version: 3, confirmedAt: nil, boundedAt: 25))
        #expect(history.add(read(2, at: 24)) == nil)
        #expect(history.add(read(2, at: 26)) != nil)
        history.add(.init(key: 2, version: 9, confirmedAt: 26, boundedAt: 26))
        #expect(history.add(read(3, at: 27)) == nil, "of another key")
    }

    @Test("what waits for a node that stands still is decided when it goes on")
    func standstill() {
        var history = PurgeHistory()
        history.add(.init(key: 1, version: 3, confirmedAt: nil, boundedAt: 25))
        history.stood(4, from: 20, to: 30)
        #expect(history.add(read(2, at: 21, node: 3)) == nil)
        #expect(history.add(read(2, at: 21, node: 4)) != nil)
    }
}
