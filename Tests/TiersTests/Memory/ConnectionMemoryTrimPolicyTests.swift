import Ground
import Testing
import Tiers

@Suite("Memory of connections that have gone")
struct ConnectionMemoryTrimPolicyTests {
    private func returns(_ looks: [(second: Int, open: Int)]) -> [Int] {
        var rule = ConnectionMemoryTrimPolicy()
        return looks.filter { look in
            rule.evaluate(now: .zero + .seconds(Int64(look.second)), openConnections: look.open)
        }.map(\.second)
    }

    @Test("it is given back once, when it has been calm for a while after many went")
    func calm() {
        let looks = [(0, 10_000)] + (1...30).map { ($0, 20 + $0 % 2) }
        #expect(returns(looks) == [6])
    }

    @Test("few, or the lesser half, are not worth it")
    func few() {
        #expect(returns([(0, 511)] + (1...30).map { ($0, 0) }) == [])
        #expect(returns([(0, 10_000)] + (1...30).map { ($0, 5_001) }) == [])
        #expect(returns([(0, 512)] + (1...30).map { ($0, 0) }) == [6])
        #expect(returns([(0, 10_000)] + (1...30).map { ($0, 5_000) }) == [6])
    }

    @Test("while they still go, or come again, it is waited")
    func unrest() {
        let going = [(0, 10_000)] + (1...40).map { ($0, max(0, 4_000 - 100 * $0)) }
        #expect(returns(going) == [])
        let back = [(0, 10_000), (1, 0), (3, 0), (5, 0), (6, 10_000)] + [(7, 0), (11, 0), (12, 0)]
        #expect(returns(back) == [12])
    }
}
