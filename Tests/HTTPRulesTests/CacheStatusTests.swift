import Ground
import HTTPRules
import Testing

@Suite struct CacheStatusTests {
    private static func status(
        _ outcome: CacheStatus.Outcome, ttl: Int64? = nil, status: UInt16? = nil,
        stored: Bool = false, collapsed: Bool = false, detail: CacheStatus.Detail? = nil
    ) -> CacheStatus {
        var value = CacheStatus(outcome, ttlSeconds: ttl, detail: detail)
        value.forwardStatus = status
        value.isStored = stored
        value.isCollapsed = collapsed
        return value
    }

    private static let table: [(CacheStatus, String)] = [
        (status(.hit, ttl: 376, detail: .memory), "nuthatch; hit; ttl=376; detail=memory"),
        (status(.hit, ttl: -412, detail: .disk), "nuthatch; hit; ttl=-412; detail=disk"),
        (status(.hit, ttl: 0, detail: .peer), "nuthatch; hit; ttl=0; detail=peer"),
        (status(.hit, ttl: .max), "nuthatch; hit; ttl=999999999999999"),
        (status(.hit, ttl: .min), "nuthatch; hit; ttl=-999999999999999"),
        (status(.hit), "nuthatch; hit"), (status(.none), "nuthatch"),
        (
            status(
                .forwarded(.uriMiss), status: 200, stored: true, collapsed: true, detail: .origin),
            "nuthatch; fwd=uri-miss; fwd-status=200; stored; collapsed; detail=origin"
        ),
        (
            status(.forwarded(.stale), ttl: 60, status: 304),
            "nuthatch; fwd=stale; fwd-status=304; ttl=60"
        ),
        (status(.forwarded(.bypass)), "nuthatch; fwd=bypass"),
        (status(.forwarded(.method)), "nuthatch; fwd=method"),
        (status(.forwarded(.varyMiss)), "nuthatch; fwd=vary-miss"),
        (status(.forwarded(.miss), collapsed: true), "nuthatch; fwd=miss; collapsed"),
        (status(.forwarded(.request)), "nuthatch; fwd=request"),
        (status(.forwarded(.partial), stored: true), "nuthatch; fwd=partial; stored"),
    ]

    @Test("RFC 9211 §2 and RFC 8941 §3.1: each parameter as a structured field", arguments: table)
    func rendered(status: CacheStatus, expected: String) {
        var bytes = "x".bytes
        status.append(to: &bytes)
        #expect(bytes.text == "x" + expected)
    }
}
