import Serving
import Testing
import Tiers

@Suite("What an answer is good for when it comes")
struct StandingTests {
    struct Case: Sendable {
        let effect: Mark.Effect?
        let isExcluded: Bool
        let isShared: Bool
        let standing: Fill.Standing
    }

    private static let cases: [Case] = [
        // Nothing was invalidated since it was asked for.
        Case(effect: nil, isExcluded: false, isShared: true, standing: .current),
        Case(effect: nil, isExcluded: true, isShared: true, standing: .void),
        // A soft purge leaves it to the one who caused the fetch, unless the fence is closed.
        Case(effect: .stale, isExcluded: false, isShared: true, standing: .overtaken),
        Case(effect: .stale, isExcluded: true, isShared: true, standing: .void),
        // A hard one leaves it to nobody.
        Case(effect: .dead, isExcluded: false, isShared: true, standing: .void),
        Case(effect: .dead, isExcluded: true, isShared: true, standing: .void),
        // What is for one client alone is that one's, as it came.
        Case(effect: nil, isExcluded: false, isShared: false, standing: .current),
        Case(effect: nil, isExcluded: true, isShared: false, standing: .current),
        Case(effect: .stale, isExcluded: true, isShared: false, standing: .overtaken),
        Case(effect: .dead, isExcluded: false, isShared: false, standing: .overtaken),
    ]

    @Test("by what was invalidated since, the fence, and for whom it is", arguments: cases)
    func table(_ row: Case) {
        let standing = Fill.Standing(
            of: row.effect, isExcluded: row.isExcluded, isShared: row.isShared)
        #expect(standing == row.standing)
    }
}
