import Ground
import HTTPRules
import Testing

@Suite struct VariantChoiceTests {
    private func choice(_ answers: [(Int64, Bool)]) -> Int? {
        var choice = VariantChoice()
        for (number, answer) in answers.enumerated() {
            choice.add(number: number, date: WallTime(seconds: answer.0), hasVary: answer.1)
        }
        return choice.number
    }

    @Test("RFC 9111 §4.1: of several that match, the most recent")
    func newest() {
        #expect(choice([]) == nil)
        #expect(choice([(.min, false)]) == 0)
        #expect(choice([(1, true), (3, true), (2, true)]) == 1)
        #expect(choice([(1, true), (1, true)]) == 0)
    }

    @Test("RFC 9111 §4.1: one without Vary only where there is none with it")
    func without() {
        #expect(choice([(9, false), (1, true)]) == 1)
        #expect(choice([(1, true), (9, false)]) == 0)
        #expect(choice([(1, true), (9, false), (2, true)]) == 2)
        #expect(choice([(1, false), (9, false)]) == 1)
    }
}
