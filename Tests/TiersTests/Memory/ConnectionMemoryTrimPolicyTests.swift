import Ground
import Testing
import Tiers

@Suite("Releasing the memory of closed connections")
struct ConnectionMemoryTrimPolicyTests {
    private func returns(_ looks: [(second: Int, open: Int)]) -> [Int] {
        var rule = ConnectionMemoryTrimPolicy()
        return looks.filter { look in
            rule.evaluate(now: .zero + .seconds(Int64(look.second)), openConnections: look.open)
        }.map(\.second)
    }

    @Test("Memory is released once, after a calm period that follows many closings")
    func calm() {
        let looks = [(0, 10_000)] + (1...30).map { ($0, 20 + $0 % 2) }
        #expect(returns(looks) == [6])
    }

    @Test("Few closings, or fewer than half, release nothing")
    func few() {
        #expect(returns([(0, 511)] + (1...30).map { ($0, 0) }) == [])
        #expect(returns([(0, 10_000)] + (1...30).map { ($0, 5_001) }) == [])
        #expect(returns([(0, 512)] + (1...30).map { ($0, 0) }) == [6])
        #expect(returns([(0, 10_000)] + (1...30).map { ($0, 5_000) }) == [6])
    }

    @Test("While connections still close or return, nothing is released")
    func unrest() {
        let going = [(0, 10_000)] + (1...40).map { ($0, max(0, 4_000 - 100 * $0)) }
        #expect(returns(going) == [])
        let back = [(0, 10_000), (1, 0), (3, 0), (5, 0), (6, 10_000)] + [(7, 0), (11, 0), (12, 0)]
        #expect(returns(back) == [12])
    }
}
