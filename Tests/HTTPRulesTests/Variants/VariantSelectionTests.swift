import Ground
import HTTPRules
import Testing

@Suite struct VariantSelectionTests {
    private func choice(_ responses: [(Int64, Bool)]) -> Int? {
        var choice = VariantSelection()
        for (number, response) in responses.enumerated() {
            choice.add(index: number, date: WallTime(seconds: response.0), hasVary: response.1)
        }
        return choice.index
    }

    @Test("RFC 9111 §4.1: of several matches the most recent is selected")
    func newest() {
        #expect(choice([]) == nil)
        #expect(choice([(.min, false)]) == 0)
        #expect(choice([(1, true), (3, true), (2, true)]) == 1)
        #expect(choice([(1, true), (1, true)]) == 0)
    }

    @Test("RFC 9111 §4.1: a response without Vary is selected only if none with it matches")
    func without() {
        #expect(choice([(9, false), (1, true)]) == 1)
        #expect(choice([(1, true), (9, false)]) == 0)
        #expect(choice([(1, true), (9, false), (2, true)]) == 2)
        #expect(choice([(1, false), (9, false)]) == 1)
    }
}
