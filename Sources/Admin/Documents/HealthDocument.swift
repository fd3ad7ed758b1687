/// `/healthz` and `/readyz`.
package enum HealthDocument {
    /// As long as the process answers.
    package static let alive: JSON = ["status": "ok"]

    /// One that `isFenced` says so, and is ready all the same: it can serve, at the price of asking
    /// origins.
    package static func json(_ readiness: Readiness, isFenced: Bool) -> JSON {
        let status = JSON.Member("status", .text(readiness.rawValue))
        return .object(isFenced ? [status, JSON.Member("fenced", true)] : [status])
    }

    /// 503 says that requests should go elsewhere.
    package static func status(_ readiness: Readiness) -> UInt16 { readiness == .ready ? 200 : 503 }

    static let shape = Shape.object(
        .has("status", Shape.choice(Readiness.allCases.map(\.rawValue))),
        .may("fenced", Shape.boolean, "It cannot prove that nobody purged without it"))
}
