/// The body of `/healthz` and `/readyz`.
package struct HealthDocument: AdminDocument {
    /// The raw value of the node's ``Readiness``; `ok` in `/healthz`.
    package var status = "ok"
    /// True if the node is fenced, else `nil`.
    ///
    /// A fenced node can be ready: it serves, but revalidates at origins.
    package var isFenced: Bool?
    /// False if the node is not a voter, so that no majority counts it; else `nil`.
    package var isVoter: Bool?

    /// Creates the body of `/healthz`, constant while the process responds.
    package init() {}

    /// Creates the body of `/readyz`.
    package init(_ readiness: Readiness, isFenced: Bool, isVoter: Bool = true) {
        status = readiness.rawValue
        self.isFenced = isFenced ? true : nil
        self.isVoter = isVoter ? nil : false
    }

    /// Returns 200 for a ready node, if the further condition `requiring` holds, else 503: requests
    /// should go elsewhere.
    package static func status(_ readiness: Readiness, requiring: Bool = true) -> UInt16 {
        readiness == .ready && requiring ? 200 : 503
    }

    /// The members of `/readyz`.
    package static let fields: [Field] = [
        .required("status", \.status, as: .enumeration(Readiness.self)),
        .optional("fenced", \.isFenced, "True if the fence is closed, otherwise absent"),
        .optional("counted", \.isVoter, "False if the node is not a voter, otherwise absent"),
    ]
}

/// The response of an operation that continues in the background: `{"status": …}`.
package struct OperationStatusDocument: AdminDocument {
    /// The state in one word.
    package var status = ""

    /// Creates a document without a state.
    package init() {}

    /// Creates the document of a state.
    package init(_ status: String) {
        self.status = status
    }

    /// The state as the only member.
    package static let fields: [Field] = [.required("status", \.status)]
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
