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
    ]
}
