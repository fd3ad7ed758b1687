import Ground
import Serving
import Testing

@Suite("The rest of a body comes from the same answer alone")
struct BrokenAnswerTests {
    private func answer(
        _ entityTag: String = "", modified: Int64? = nil, isStrong: Bool = true,
        size: UInt64? = 1000
    ) -> BrokenAnswer {
        BrokenAnswer(
            entityTag: Array(entityTag.utf8), lastModified: modified.map(WallTime.init(seconds:)),
            isStrongDate: isStrong, sizeBytes: size)
    }

    @Test("a strong entity tag says so, also where a length is not known")
    func tags() {
        #expect(answer("\"a\"").isSame(as: answer("\"a\"")))
        #expect(answer("\"a\"").isSame(as: answer("\"a\"", size: nil)))
        #expect(!answer("\"a\"").isSame(as: answer("\"b\"")))
        #expect(!answer("\"a\"").isSame(as: answer("\"a\"", size: 1001)))
        #expect(!answer("\"a\"").isSame(as: answer()))
    }

    @Test("a weak one does not, not even with a date that is strong")
    func weakTags() {
        let weak = answer("W/\"a\"", modified: 7)
        #expect(!weak.canBeResumed && !weak.isSame(as: weak))
        #expect(!weak.isSame(as: answer(modified: 7)))
    }

    @Test("without one a strong date says so, and both lengths")
    func dates() {
        #expect(answer(modified: 7).isSame(as: answer(modified: 7)))
        #expect(!answer(modified: 7).isSame(as: answer(modified: 8)))
        #expect(!answer(modified: 7).isSame(as: answer(modified: 7, size: 1001)))
        #expect(!answer(modified: 7).isSame(as: answer(modified: 7, size: nil)))
        let weak = answer(modified: 7, isStrong: false)
        #expect(!weak.canBeResumed && !answer(modified: 7).isSame(as: weak))
    }

    @Test("what names no version is not resumed")
    func nameless() {
        #expect(!answer().canBeResumed && !answer().isSame(as: answer()))
    }
}
