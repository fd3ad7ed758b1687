/// One member of the cluster, as this node sees it; `/admin/v1/members` lists all.
package struct MemberDocument: ListedDocument {
    /// The member's node id, 32 hexadecimal digits.
    package var node = ""
    /// The id of the member's process, 32 hexadecimal digits.
    package var process = ""
    /// The member's host and port: letters, digits and `.-_:[]` only.
    package var address = ""
    /// The state: `alive`, `suspected`, `dead` or `left`; `unknown` for a voter never met.
    package var state = "unknown"
    /// True if the member is a voter: majorities count it, and receipts wait for it.
    package var isVoter = false
    /// The time in milliseconds since the member last replied to a query for its invalidation
    /// version; `nil` if it never did.
    package var millisecondsSinceContact: Int64?
    /// True for the node that produced the document.
    package var isSelf = false
    /// True if this node has a connection with the member.
    package var isConnected = false
    /// True if the member reports that it has all invalidations.
    package var isCaughtUp = false
    /// True if the member is draining.
    package var isDraining = false
    /// The weight that the member declares.
    package var weight = 0
    /// The part of ``weight`` that the ring uses.
    package var effectiveWeight = 0
    /// The member's share of all keys as primary owner, from 0 to 1.
    package var primaryShare = 0.0
    /// The number of invalidations synced here and not confirmed by the member; `nil` if unknown.
    package var lagRecords: UInt64?
    /// The member's name; empty if unknown.
    package var name = ""
    /// The URL of the member's admin port; `nil` if it is not advertised.
    package var adminURL: String?
    /// The member's version of the program; empty if unknown.
    package var version = ""
    /// The member's own report; `nil` if none arrived recently.
    package var summary: Summary?
    /// The names of settings that must be equal in a cluster and differ from this node's.
    package var differingSettings: [String] = []

    /// Creates a member without known facts.
    package init() {}

    /// The name of the list.
    package static let listName = "members"

    /// The members of the JSON object.
    package static let fields: [Field] = [
        .required("node", \.node, as: .id),
        .required("process", \.process),
        .required("address", \.address),
        .required(
            "state", \.state, as: .enumeration(["alive", "suspected", "dead", "left", "unknown"])),
        .required(
            "counted", \.isVoter, "The member is a voter: majorities and receipts depend on it"),
        .nullable(
            "contact_ms_ago", \.millisecondsSinceContact,
            "Time since its last reply about its invalidations; null if it never replied"),
        .required("self", \.isSelf, "The member is the node that responds"),
        .required("connected", \.isConnected),
        .required("caught_up", \.isCaughtUp),
        .required("draining", \.isDraining),
        .required("weight", \.weight),
        .required(
            "weight_counted", \.effectiveWeight, "The part of the weight that the ring uses",
            isLenient: true),
        .required("ring_share", \.primaryShare, "The share of keys that it owns as primary"),
        .nullable(
            "lag_records", \.lagRecords,
            "Invalidations synced here that it has not confirmed; null if unknown"),
        .required("name", \.name, "Empty if unknown", isLenient: true),
        .nullable("admin_url", \.adminURL, "The URL of its admin port; null if not advertised"),
        .required("version", \.version, "Empty if unknown", isLenient: true),
        .nullable(
            "summary", \.summary, "Its own report; null if unknown, or from an older version"),
        .required(
            "settings_differ", \.differingSettings,
            "Settings that must be equal in a cluster and differ from those of this node",
            isLenient: true),
    ]
}

extension MemberDocument {
    /// The report of a member about itself; counters are since its start.
    package struct Summary: AdminDocument {
        /// The number of responses.
        package var requests: UInt64 = 0
        /// The number of responses that needed no body from the origin for themselves.
        package var hits: UInt64 = 0
        /// The number of responses that the cache could have served.
        package var cacheable: UInt64 = 0
        /// The number of 5xx responses.
        package var serverErrors: UInt64 = 0
        /// The number of fetches from origins that have ended.
        package var originFetches: UInt64 = 0
        /// The number of failed fetches.
        package var originFailed: UInt64 = 0
        /// The bytes sent to clients.
        package var sentBytes: UInt64 = 0
        /// The body bytes received from origins.
        package var originBytes: UInt64 = 0
        /// The bytes in use in memory.
        package var memoryUsedBytes: UInt64 = 0
        /// The bytes in use on disk.
        package var diskUsedBytes: UInt64 = 0
        /// The member's state: a raw value of ``NodeState``, or one that only newer versions know.
        package var state = NodeState.ready.rawValue
        /// The summary of its worst condition; empty without one.
        package var condition = ""
        /// The age of the report in milliseconds.
        package var ageMilliseconds: Int64 = 0

        /// Creates an empty report.
        package init() {}

        /// The members.
        package static let fields: [Field] = [
            .required("requests", \.requests),
            .required("hits", \.hits),
            .required("cacheable", \.cacheable),
            .required("responses_5xx", \.serverErrors),
            .required("origin_fetches", \.originFetches),
            .required("origin_failed", \.originFailed),
            .required("sent_bytes", \.sentBytes),
            .required("origin_bytes", \.originBytes),
            .required("memory_used_bytes", \.memoryUsedBytes),
            .required("disk_used_bytes", \.diskUsedBytes),
            .required("state", \.state, as: .enumeration(NodeState.self)),
            .required("condition", \.condition, "The summary of its worst condition, or empty"),
            .required("age_ms", \.ageMilliseconds),
        ]
    }
}
