/// The bodies and statuses of `/healthz` and `/readyz`.
package enum HealthDocument {
    /// The body of `/healthz`, constant while the process responds.
    package static let alive: JSON = ["status": "ok"]

    /// Returns the body of `/readyz`.
    ///
    /// A fenced node can be ready: it serves, but revalidates at origins. A node that is not a
    /// voter is not yet part of any majority.
    package static func json(
        _ readiness: Readiness, isFenced: Bool, isVoter: Bool = true
    ) -> JSON {
        var members = [JSON.Member("status", .text(readiness.rawValue))]
        if isFenced { members.append(JSON.Member("fenced", true)) }
        if !isVoter { members.append(JSON.Member("counted", false)) }
        return .object(members)
    }

    /// Returns 200 for a ready node, if the further condition `requiring` holds, else 503: requests
    /// should go elsewhere.
    package static func status(_ readiness: Readiness, requiring: Bool = true) -> UInt16 {
        readiness == .ready && requiring ? 200 : 503
    }

    static let schema = JSONSchema.object(
        .required("status", JSONSchema.enumeration(Readiness.allCases.map(\.rawValue))),
        .optional("fenced", JSONSchema.boolean, "It cannot prove that nobody purged without it"),
        .optional("counted", JSONSchema.boolean, "False while it is not counted, else left out"))
}

/// The readiness of a node for requests; liveness is separate, and holds until the process ends.
package enum Readiness: String, CaseIterable, Sendable {
    /// Not all ports are open yet. Next: joining, ready.
    case starting
    /// The node looks for its cluster, and serves no clients. Next: ready.
    case joining
    /// The node serves requests. Next: draining.
    case ready
    /// The node is stopping: it finishes running requests, and new ones should go elsewhere.
    case draining
}
