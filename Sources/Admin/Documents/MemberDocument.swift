/// One member of the cluster, as this node sees it.
package struct MemberDocument: Hashable, Sendable {
    /// The member's node id, 32 hexadecimal digits.
    package var node: String
    /// The id of the member's process, 32 hexadecimal digits.
    package var process: String
    /// The member's host and port: letters, digits and `.-_:[]` only.
    package var address: String
    /// The state: `alive`, `suspected`, `dead` or `left`; `unknown` for a voter never met.
    package var state: String
    /// True if the member is a voter: majorities count it, and receipts wait for it.
    package var isVoter: Bool
    /// The time in milliseconds since the member last replied to a query for its invalidation
    /// version; `nil` if it never did.
    package var millisecondsSinceContact: Int64?
    /// The weight that the member declares.
    package var weight: Int
    /// The part of ``weight`` that the ring uses; `nil` from a node that does not report it.
    package var effectiveWeight: Int?
    /// True if the member reports that it has all invalidations.
    package var isCaughtUp: Bool
    /// True if the member is draining.
    package var isDraining: Bool
    /// True for the node that produced the document.
    package var isSelf: Bool
    /// True if this node has a connection with the member.
    package var isConnected: Bool
    /// The member's share of all keys as primary owner, from 0 to 1.
    package var primaryShare: Double
    /// The number of invalidations synced here and not confirmed by the member; `nil` if unknown.
    package var lagRecords: UInt64?

    /// Creates a row from its parts.
    ///
    /// - Parameters:
    ///   - node: the node id, 32 hexadecimal digits.
    ///   - process: the process id, 32 hexadecimal digits.
    ///   - address: host and port.
    ///   - state: one of the values of ``state``.
    ///   - isVoter: true for a voter.
    ///   - millisecondsSinceContact: the value of ``millisecondsSinceContact``.
    ///   - weight: the declared weight.
    ///   - effectiveWeight: the weight that the ring uses; `weight` if `nil`.
    ///   - isCaughtUp: true if it has all invalidations.
    ///   - isDraining: true if it drains.
    ///   - isSelf: true for the node that produces the document.
    ///   - isConnected: true if there is a connection.
    ///   - primaryShare: the share of keys as primary owner, from 0 to 1.
    ///   - lagRecords: the number of unconfirmed invalidations.
    package init(
        node: String, process: String, address: String, state: String, isVoter: Bool,
        millisecondsSinceContact: Int64?, weight: Int, effectiveWeight: Int? = nil,
        isCaughtUp: Bool,
        isDraining: Bool, isSelf: Bool, isConnected: Bool, primaryShare: Double,
        lagRecords: UInt64? = nil
    ) {
        self.node = node
        self.process = process
        self.address = address
        self.state = state
        self.isVoter = isVoter
        self.millisecondsSinceContact = millisecondsSinceContact
        self.weight = weight
        self.effectiveWeight = effectiveWeight ?? weight
        self.isCaughtUp = isCaughtUp
        self.isDraining = isDraining
        self.isSelf = isSelf
        self.isConnected = isConnected
        self.primaryShare = primaryShare
        self.lagRecords = lagRecords
    }

    /// Returns `{"members": […]}`, one object per line; empty for a node outside any cluster.
    package static func json(_ rows: [MemberDocument]) -> JSON {
        ["members": .list(rows.map(\.json))]
    }

    /// The row as JSON.
    package var json: JSON {
        [
            "node": .text(node), "process": .text(process), "address": .text(address),
            "state": .text(state), "counted": .bool(isVoter),
            "contact_ms_ago": JSON(millisecondsSinceContact), "self": .bool(isSelf),
            "connected": .bool(isConnected), "caught_up": .bool(isCaughtUp),
            "draining": .bool(isDraining), "weight": JSON(weight),
            "weight_counted": JSON(effectiveWeight ?? weight),
            "ring_share": .decimal(primaryShare), "lag_records": JSON(lagRecords),
        ]
    }

    static let schema = JSONSchema.object(.required("members", JSONSchema.list(of: itemSchema)))

    static let itemSchema = JSONSchema.object(
        .required("node", JSONSchema.id), .required("process", JSONSchema.string),
        .required("address", JSONSchema.string),
        .required(
            "state", JSONSchema.enumeration(["alive", "suspected", "dead", "left", "unknown"])),
        .required("counted", JSONSchema.boolean, "Majorities are of it, and receipts wait for it"),
        .required(
            "contact_ms_ago", JSONSchema.nullable(JSONSchema.count),
            "Since it was asked last which invalidations it has, and answered"),
        .required("self", JSONSchema.boolean, "The node that is asked"),
        .required("connected", JSONSchema.boolean), .required("caught_up", JSONSchema.boolean),
        .required("draining", JSONSchema.boolean), .required("weight", JSONSchema.count),
        .required("weight_counted", JSONSchema.count, "What of the weight the ring counts"),
        .required("ring_share", JSONSchema.fraction, "What it owns first of all keys"),
        .required(
            "lag_records", JSONSchema.nullable(JSONSchema.count),
            "Invalidations that are synced here and that it has not confirmed"))
}

extension MemberDocument: Decodable {
    private enum CodingKeys: String, CodingKey {
        case node, process, address, state, weight
        case isVoter = "counted"
        case millisecondsSinceContact = "contact_ms_ago"
        case effectiveWeight = "weight_counted"
        case isCaughtUp = "caught_up"
        case isDraining = "draining"
        case isSelf = "self"
        case isConnected = "connected"
        case primaryShare = "ring_share"
        case lagRecords = "lag_records"
    }
}
