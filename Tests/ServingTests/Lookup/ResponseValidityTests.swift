import Serving
import Testing
import Tiers

@Suite("Validity of a response at its arrival")
struct ResponseValidityTests {
    struct Case: Sendable {
        let effect: InvalidationMark.Effect?
        let isExcluded: Bool
        let isShared: Bool
        let validity: Fetch.Validity
    }

    private static let cases: [Case] = [
        // Nothing was invalidated since the request.
        Case(effect: nil, isExcluded: false, isShared: true, validity: .valid),
        Case(effect: nil, isExcluded: true, isShared: true, validity: .unusable),
        // After a soft purge only the first reader may use it, with an open fence.
        Case(effect: .stale, isExcluded: false, isShared: true, validity: .mustRevalidate),
        Case(effect: .stale, isExcluded: true, isShared: true, validity: .unusable),
        // After a hard purge no reader may.
        Case(effect: .purged, isExcluded: false, isShared: true, validity: .unusable),
        Case(effect: .purged, isExcluded: true, isShared: true, validity: .unusable),
        // A response for one client goes to that client as it is.
        Case(effect: nil, isExcluded: false, isShared: false, validity: .valid),
        Case(effect: nil, isExcluded: true, isShared: false, validity: .valid),
        Case(effect: .stale, isExcluded: true, isShared: false, validity: .mustRevalidate),
        Case(effect: .purged, isExcluded: false, isShared: false, validity: .mustRevalidate),
    ]

    @Test(
        "The invalidations since the request, the fence and sharing determine it", arguments: cases)
    func table(_ row: Case) {
        let validity = Fetch.Validity(
            of: row.effect, isExcluded: row.isExcluded, isShared: row.isShared)
        #expect(validity == row.validity)
    }
}
