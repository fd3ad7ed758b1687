import Testing

@Suite("Violations of purge guarantees in a client's history")
struct PurgeHistoryTests {
    private func read(_ version: Int, at time: Double, node: Int = 0) -> PurgeHistory.Read {
        PurgeHistory.Read(key: 1, version: version, node: node, askedAt: time)
    }

    @Test("An older version violates a receipt of all nodes issued before the request")
    func confirmed() {
        var history = PurgeHistory()
        history.add(.init(key: 1, version: 3, confirmedAt: 10, boundedAt: 25))
        #expect(history.add(read(2, at: 9)) == nil)
        #expect(history.add(read(3, at: 11)) == nil)
        #expect(history.add(read(2, at: 11)) != nil)
    }

    @Test("An older version violates a bound that has passed")
    func bounded() {
        var history = PurgeHistory()
        history.add(.init(key: 1, version: 3, confirmedAt: nil, boundedAt: 25))
        #expect(history.add(read(2, at: 24)) == nil)
        #expect(history.add(read(2, at: 26)) != nil)
        history.add(.init(key: 2, version: 9, confirmedAt: 26, boundedAt: 26))
        #expect(history.add(read(3, at: 27)) == nil, "of another key")
    }

    @Test("A request to a suspended node is decided when the node resumes")
    func standstill() {
        var history = PurgeHistory()
        history.add(.init(key: 1, version: 3, confirmedAt: nil, boundedAt: 25))
        history.stood(4, from: 20, to: 30)
        #expect(history.add(read(2, at: 21, node: 3)) == nil)
        #expect(history.add(read(2, at: 21, node: 4)) != nil)
    }
}
