/// What operators are told of one member of the cluster, as the node that is asked believes.
package struct MemberDocument: Hashable, Sendable {
    /// 32 hexadecimal digits, as is ``process``.
    package var node: String
    package var process: String
    /// Host and port: letters, digits and `.-_:[]` only.
    package var address: String
    /// `alive`, `suspected`, `dead` or `left`; `unknown` of one that is counted and was not met.
    package var state: String
    /// Majorities are of it, and receipts wait for it.
    package var isVoter: Bool
    /// Since it was asked last which invalidations it has, and answered; nil if it never did.
    package var millisecondsSinceContact: Int64?
    /// What it declares.
    package var weight: Int
    /// What of ``weight`` the ring counts; nil from a node that does not say.
    package var effectiveWeight: Int?
    package var isCaughtUp: Bool
    package var isDraining: Bool
    /// The node that is asked.
    package var isSelf: Bool
    /// There is a connection with it.
    package var isConnected: Bool
    /// What it owns first of all keys, from 0 to 1.
    package var primaryShare: Double
    /// Invalidations that are synced here and that it has not confirmed; nil if that is not known.
    package var lagRecords: UInt64?

    package init(
        node: String, process: String, address: String, state: String, isCounted: Bool,
        contactMilliseconds: Int64?, weight: Int, countedWeight: Int? = nil, isCaughtUp: Bool,
        isDraining: Bool, isSelf: Bool, isConnected: Bool, ringShare: Double,
        lagRecords: UInt64? = nil
    ) {
        self.node = node
        self.process = process
        self.address = address
        self.state = state
        self.isVoter = isCounted
        self.millisecondsSinceContact = contactMilliseconds
        self.weight = weight
        self.effectiveWeight = countedWeight ?? weight
        self.isCaughtUp = isCaughtUp
        self.isDraining = isDraining
        self.isSelf = isSelf
        self.isConnected = isConnected
        self.primaryShare = ringShare
        self.lagRecords = lagRecords
    }

    /// `{"members": […]}`, one object a line; none for a node that is in no cluster.
    package static func json(_ rows: [MemberDocument]) -> JSON {
        ["members": .list(rows.map(\.json))]
    }

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
