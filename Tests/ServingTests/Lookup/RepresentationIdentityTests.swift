import Ground
import Serving
import Testing

@Suite("Resuming a body with the same representation only")
struct RepresentationIdentityTests {
    private func answer(
        _ entityTag: String = "", modified: Int64? = nil, isStrong: Bool = true,
        size: UInt64? = 1000
    ) -> RepresentationIdentity {
        RepresentationIdentity(
            entityTag: Array(entityTag.utf8), lastModified: modified.map(WallTime.init(seconds:)),
            isStrongDate: isStrong, sizeBytes: size)
    }

    @Test("Equal strong entity tags identify a representation, even if a length is unknown")
    func tags() {
        #expect(answer("\"a\"").matches(answer("\"a\"")))
        #expect(answer("\"a\"").matches(answer("\"a\"", size: nil)))
        #expect(!answer("\"a\"").matches(answer("\"b\"")))
        #expect(!answer("\"a\"").matches(answer("\"a\"", size: 1001)))
        #expect(!answer("\"a\"").matches(answer()))
    }

    @Test("A weak entity tag identifies no representation, not even with a strong date")
    func weakTags() {
        let weak = answer("W/\"a\"", modified: 7)
        #expect(!weak.canBeResumed && !weak.matches(weak))
        #expect(!weak.matches(answer(modified: 7)))
    }

    @Test("Without an entity tag, a strong date and both lengths identify a representation")
    func dates() {
        #expect(answer(modified: 7).matches(answer(modified: 7)))
        #expect(!answer(modified: 7).matches(answer(modified: 8)))
        #expect(!answer(modified: 7).matches(answer(modified: 7, size: 1001)))
        #expect(!answer(modified: 7).matches(answer(modified: 7, size: nil)))
        let weak = answer(modified: 7, isStrong: false)
        #expect(!weak.canBeResumed && !answer(modified: 7).matches(weak))
    }

    @Test("A response without a validator is not resumed")
    func nameless() {
        #expect(!answer().canBeResumed && !answer().matches(answer()))
    }
}
