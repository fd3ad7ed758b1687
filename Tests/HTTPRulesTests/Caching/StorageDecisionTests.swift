import HTTPRules
import Testing

@Suite struct StorageDecisionTests {
    /// A response and its request.
    struct Case: CustomTestStringConvertible {
        var status: UInt16
        var fields: [String]
        var request = RequestCacheability()

        init(
            _ fields: String..., status: UInt16 = 200, to request: RequestCacheability = .init()
        ) {
            self.fields = fields
            self.status = status
            self.request = request
        }

        var testDescription: String { "\(status) \(fields) \(request)" }

        func acceptance(_ before: StorageDecision.StoredState) -> StorageDecision {
            let head = ResponseHead(status: status, fields: fields)
            let examination = CacheabilityRules.evaluate(
                head, to: request, timing: receipt, policy: .site(storesSetCookie: false))
            return StorageDecision(examination, VaryNames(head), status: status, before: before)
        }
    }

    /// The decision in words.
    private func words(_ acceptance: StorageDecision) -> String {
        [
            acceptance.isStorable ? "stored" : "", acceptance.isCollapsible ? "shared" : "",
            acceptance.invalidatesStored ? "ends" : "", acceptance.isHitForMiss ? "passes" : "",
        ].filter { !$0.isEmpty }.joined(separator: " ")
    }

    private static let lasting = "Cache-Control: max-age=60"
    private static let many = (0...16).map { "n\($0)" }.joined(separator: ",")

    /// The decision for a response without a stored one, with a fresh one, and with a stale one.
    private static let table: [(Case, String, String, String)] = [
        (Case(lasting), "stored shared", "stored shared ends", "stored shared ends"),
        (Case(lasting, "Vary: Foo"), "stored shared", "stored shared ends", "stored shared ends"),
        (
            Case(lasting, status: 404),
            "stored shared", "stored shared ends", "stored shared ends"
        ),
        // It may be for one client, although it does not say so.
        (Case("ETag: \"a\""), "stored", "stored ends", "stored ends"),
        (Case("Cache-Control: max-age=0"), "stored", "stored ends", "stored ends"),
        (Case("Cache-Control: no-cache", "ETag: \"a\""), "stored", "stored ends", "stored ends"),
        // The next response will not be storable either.
        (Case("Cache-Control: no-store"), "passes", "", "ends passes"),
        (Case("Cache-Control: private, max-age=60"), "passes", "", "ends passes"),
        (Case(lasting, "Set-Cookie: a=b"), "passes", "", "ends passes"),
        (Case(), "passes", "", "ends passes"),
        (Case(lasting, "Vary: *"), "passes", "", "ends passes"),
        (Case(lasting, "Vary: a b"), "passes", "", "ends passes"),
        (Case(lasting, "Vary: \(many)"), "passes", "", "ends passes"),
        (Case("ETag: \"a\"", "Vary: \(many)"), "passes", "", "ends passes"),
        // The request or the status is the reason.
        (Case(lasting, to: RequestCacheability(isNoStore: true)), "", "", "ends"),
        (Case(lasting, to: RequestCacheability(hasAuthorization: true)), "", "", "ends"),
        (Case(lasting, to: RequestCacheability(method: .head)), "", "", "ends"),
        (Case(lasting, status: 206), "", "", "ends"),
        (Case(status: 403), "", "", "ends"),
        // Failures remove nothing, even if they are stored in its place.
        (Case(lasting, status: 503), "stored shared", "stored shared", "stored shared"),
        (Case(status: 503), "", "", ""),
        (Case("Cache-Control: no-store", status: 500), "", "", ""),
    ]

    @Test("RFC 9111 §3, §4.1: the storage decision", arguments: table)
    func outcomes(response: Case, nothing: String, fresh: String, stale: String) {
        #expect(words(response.acceptance(.nothing)) == nothing)
        #expect(words(response.acceptance(.fresh)) == fresh)
        #expect(words(response.acceptance(.stale)) == stale)
    }

    @Test("A response that no later request could find is neither stored nor shared")
    func notPlaced() {
        for (before, expected) in [
            (StorageDecision.StoredState.nothing, ""), (.fresh, ""), (.stale, "ends"),
        ] {
            var acceptance = Case(Self.lasting, "Vary: Foo").acceptance(before)
            #expect(acceptance.hasKey)
            acceptance.hasKey = false
            #expect(words(acceptance) == expected)
        }
    }
}
