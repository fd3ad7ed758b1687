import Ground
import Serving
import Testing

@Suite("The rest of a body comes from the same answer alone")
struct RepresentationIdentityTests {
    private func answer(
        _ entityTag: String = "", modified: Int64? = nil, isStrong: Bool = true,
        size: UInt64? = 1000
    ) -> RepresentationIdentity {
        RepresentationIdentity(
            entityTag: Array(entityTag.utf8), lastModified: modified.map(WallTime.init(seconds:)),
            isStrongDate: isStrong, sizeBytes: size)
    }

    @Test("a strong entity tag says so, also where a length is not known")
    func tags() {
        #expect(answer("\"a\"").matches(answer("\"a\"")))
        #expect(answer("\"a\"").matches(answer("\"a\"", size: nil)))
        #expect(!answer("\"a\"").matches(answer("\"b\"")))
        #expect(!answer("\"a\"").matches(answer("\"a\"", size: 1001)))
        #expect(!answer("\"a\"").matches(answer()))
    }

    @Test("a weak one does not, not even with a date that is strong")
    func weakTags() {
        let weak = answer("W/\"a\"", modified: 7)
        #expect(!weak.canBeResumed && !weak.matches(weak))
        #expect(!weak.matches(answer(modified: 7)))
    }

    @Test("without one a strong date says so, and both lengths")
    func dates() {
        #expect(answer(modified: 7).matches(answer(modified: 7)))
        #expect(!answer(modified: 7).matches(answer(modified: 8)))
        #expect(!answer(modified: 7).matches(answer(modified: 7, size: 1001)))
        #expect(!answer(modified: 7).matches(answer(modified: 7, size: nil)))
        let weak = answer(modified: 7, isStrong: false)
        #expect(!weak.canBeResumed && !answer(modified: 7).matches(weak))
    }

    @Test("what names no version is not resumed")
    func nameless() {
        #expect(!answer().canBeResumed && !answer().matches(answer()))
    }
}
