import Serving
import Testing
import Tiers

@Suite("What an answer is good for when it comes")
struct StandingTests {
    struct Case: Sendable {
        let effect: InvalidationMark.Effect?
        let isExcluded: Bool
        let isShared: Bool
        let standing: Fetch.Validity
    }

    private static let cases: [Case] = [
        // Nothing was invalidated since it was asked for.
        Case(effect: nil, isExcluded: false, isShared: true, standing: .valid),
        Case(effect: nil, isExcluded: true, isShared: true, standing: .unusable),
        // A soft purge leaves it to the one who caused the fetch, unless the fence is closed.
        Case(effect: .stale, isExcluded: false, isShared: true, standing: .mustRevalidate),
        Case(effect: .stale, isExcluded: true, isShared: true, standing: .unusable),
        // A hard one leaves it to nobody.
        Case(effect: .purged, isExcluded: false, isShared: true, standing: .unusable),
        Case(effect: .purged, isExcluded: true, isShared: true, standing: .unusable),
        // What is for one client alone is that one's, as it came.
        Case(effect: nil, isExcluded: false, isShared: false, standing: .valid),
        Case(effect: nil, isExcluded: true, isShared: false, standing: .valid),
        Case(effect: .stale, isExcluded: true, isShared: false, standing: .mustRevalidate),
        Case(effect: .purged, isExcluded: false, isShared: false, standing: .mustRevalidate),
    ]

    @Test("by what was invalidated since, the fence, and for whom it is", arguments: cases)
    func table(_ row: Case) {
        let standing = Fetch.Validity(
            of: row.effect, isExcluded: row.isExcluded, isShared: row.isShared)
        #expect(standing == row.standing)
    }
}
