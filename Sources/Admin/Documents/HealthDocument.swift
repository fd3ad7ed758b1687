/// `/healthz` and `/readyz`.
package enum HealthDocument {
    /// As long as the process answers.
    package static let alive: JSON = ["status": "ok"]

    /// What a node says of itself.
    ///
    /// One that `isFenced` is ready all the same: it can serve, at the price of asking origins. One
    /// that is not counted is not yet needed for any majority.
    package static func json(
        _ readiness: Readiness, isFenced: Bool, isVoter: Bool = true
    ) -> JSON {
        var members = [JSON.Member("status", .text(readiness.rawValue))]
        if isFenced { members.append(JSON.Member("fenced", true)) }
        if !isVoter { members.append(JSON.Member("counted", false)) }
        return .object(members)
    }

    /// 503 says that requests should go elsewhere; `needs` holds what else has to be so.
    package static func status(_ readiness: Readiness, requiring: Bool = true) -> UInt16 {
        readiness == .ready && requiring ? 200 : 503
    }

    static let schema = JSONSchema.object(
        .required("status", JSONSchema.enumeration(Readiness.allCases.map(\.rawValue))),
        .optional("fenced", JSONSchema.boolean, "It cannot prove that nobody purged without it"),
        .optional("counted", JSONSchema.boolean, "False while it is not counted, else left out"))
}

/// Whether a node wants to be sent requests; health is another matter, and ends with the process.
package enum Readiness: String, CaseIterable, Sendable {
    /// Not all ports are open yet. Can become: joining, ready.
    case starting
    /// The node looks for its cluster, and serves nobody. Can become: ready.
    case joining
    /// Requests are served. Can become: draining.
    case ready
    /// The node was told to stop; running requests are finished, new ones should go elsewhere.
    case draining
}
