package import Ground

/// The faults of a node that an operator should know of: `/admin/v1/conditions`.
package struct ConditionsDocument: AdminDocument {
    /// The state: a raw value of ``NodeState``, or one that only newer versions know.
    package var state = NodeState.ready.rawValue
    /// The conditions, the worst first.
    package var conditions: [Condition] = []

    /// Creates the document of a node without faults.
    package init() {}

    /// Creates the document of `conditions`, which are sorted.
    package init(_ conditions: [Condition]) {
        self.conditions = conditions
        let isCritical = conditions.contains { $0.severity == Condition.Severity.critical.rawValue }
        state =
            (isCritical ? NodeState.critical : conditions.isEmpty ? .ready : .warning).rawValue
    }

    /// The members.
    package static let fields: [Field] = [
        .required(
            "state", \.state, "The severity of the worst condition; ready without one",
            as: .enumeration(NodeState.self)),
        .required("conditions", \.conditions, "The worst first"),
    ]
}

/// The state of a node in one word: the worst of what is known.
package enum NodeState: String, CaseIterable, Sendable {
    /// No fault is known.
    case ready
    /// Something needs attention soon.
    case warning
    /// Clients are affected, or are about to be.
    case critical
}

/// A fault of a node, in words.
package struct Condition: AdminDocument {
    /// The name: a raw value of ``Name``, or one that only newer versions know.
    package var name = ""
    /// The severity: a raw value of ``Severity``, or one that only newer versions know.
    package var severity = Severity.warning.rawValue
    /// The origin, site, member or file concerned; empty for the node itself.
    package var subject = ""
    /// A sentence with figures.
    package var summary = ""
    /// What to do.
    package var advice = ""
    /// The time in milliseconds for which the condition has held.
    package var sinceMilliseconds: Int64 = 0
    /// The alert of `deploy/grafana/rules.yaml` that fires if the condition lasts; `nil` for none.
    package var alert: String?

    /// The severity of a condition.
    package enum Severity: String, CaseIterable, Sendable {
        /// Clients are affected, or are about to be.
        case critical
        /// Something needs attention soon.
        case warning
    }

    /// The kinds of conditions, causes before their effects: of those with equal severity, the
    /// first is the one to read.
    package enum Name: String, CaseIterable, Sendable {
        /// The fence is closed.
        case fenced
        /// The node looks for its cluster.
        case joining
        /// The file system has no space, or refuses writes.
        case diskFull = "disk-full"
        /// The disk tier is off for another reason.
        case diskDown = "disk-down"
        /// An origin is not tried because it failed repeatedly, or none of its fetches succeeds.
        case originDown = "origin-down"
        /// A certificate expires soon, or has expired.
        case certificateExpiring = "certificate-expiring"
        /// A node with another secret, or without a common protocol version, was refused.
        case peerRejected = "peer-rejected"
        /// A member is suspected or dead.
        case memberMissing = "member-missing"
        /// A live member has no connection with this node.
        case memberUnreachable = "member-unreachable"
        /// Connections of clients are refused.
        case connectionsRefused = "connections-refused"
        /// A considerable share of the fetches from an origin fails.
        case originFailing = "origin-failing"
        /// A considerable share of the responses of a site is 5xx.
        case siteFailing = "site-failing"
        /// Requests get 503 because of a limit.
        case refusing
        /// A considerable share of the responses is 5xx.
        case serverErrors = "server-errors"
        /// A member reports a critical condition.
        case memberFailing = "member-failing"
        /// Purges of this node stay unconfirmed.
        case purgesUnconfirmed = "purges-unconfirmed"
        /// A member has other values of settings that must be equal.
        case settingsDiffer = "settings-differ"
        /// A member runs another version.
        case versionDiffers = "version-differs"
        /// The memory limit is lowered under pressure.
        case memoryShort = "memory-short"
        /// The disk is slower than the misses.
        case diskSlow = "disk-slow"
        /// Lines of the access log are lost.
        case accessLogLost = "access-log-lost"
        /// The node is draining.
        case draining
    }

    /// Creates an empty condition.
    package init() {}

    /// Creates a condition that has begun just now.
    ///
    /// - Parameters:
    ///   - name: the kind.
    ///   - severity: the severity.
    ///   - subject: the origin, site, member or file concerned; empty for the node itself.
    ///   - summary: a sentence with figures.
    ///   - advice: what to do.
    ///   - alert: the alert that fires if the condition lasts; `nil` for none.
    package init(
        _ name: Name, _ severity: Severity, subject: String = "", _ summary: String,
        advice: String, alert: String? = nil
    ) {
        self.name = name.rawValue
        self.severity = severity.rawValue
        self.subject = subject
        self.summary = summary
        self.advice = advice
        self.alert = alert
    }

    /// The members.
    package static let fields: [Field] = [
        .required("name", \.name, as: .enumeration(Name.self)),
        .required("severity", \.severity, as: .enumeration(Severity.self)),
        .required(
            "subject", \.subject,
            "The origin, site, member or file concerned; empty for the node itself"),
        .required("summary", \.summary, "A sentence with figures"),
        .required("advice", \.advice, "What to do"),
        .required("since_ms", \.sinceMilliseconds, "Time for which the condition has held"),
        .optional("alert", \.alert, "The Prometheus alert that fires if the condition lasts"),
    ]
}

/// The conditions that hold, and since when.
package struct ConditionLog: Sendable {
    /// A condition's identity.
    private struct Key: Hashable {
        let name: String
        let subject: String
    }

    private var begun: [Key: Interval] = [:]

    /// Creates a log without conditions.
    package init() {}

    /// Records what has been found at `uptime`, and returns what is to be shown: what has held for
    /// long enough, the worst first.
    package mutating func record(
        _ findings: [ConditionRules.Finding], at uptime: Interval
    ) -> ConditionsDocument {
        var current: [Key: Interval] = [:]
        var shown: [Condition] = []
        for finding in findings {
            var condition = finding.condition
            let key = Key(name: condition.name, subject: condition.subject)
            let since = min(begun[key] ?? uptime, uptime)
            current[key] = since
            let held = Interval(nanoseconds: uptime.nanoseconds - since.nanoseconds)
            guard held >= finding.delay else { continue }
            condition.sinceMilliseconds = held.milliseconds
            shown.append(condition)
        }
        begun = current
        return ConditionsDocument(shown.sorted { Self.rank($0) < Self.rank($1) })
    }

    /// Returns the place of a condition: by severity, by kind, and by subject.
    private static func rank(_ condition: Condition) -> (Int, Int, String) {
        let severities = Condition.Severity.allCases.map(\.rawValue)
        let names = Condition.Name.allCases.map(\.rawValue)
        return (
            severities.firstIndex(of: condition.severity) ?? severities.count,
            names.firstIndex(of: condition.name) ?? names.count, condition.subject
        )
    }
}
