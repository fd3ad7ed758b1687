/// What operators are told of one member of the cluster, as the node that is asked believes.
package struct MemberRow: Hashable, Sendable {
    /// 32 hexadecimal digits, as is ``process``.
    package var node: String
    package var process: String
    /// Host and port: letters, digits and `.-_:[]` only.
    package var address: String
    /// `alive`, `suspected`, `dead` or `left`; `unknown` of one that is counted and was not met.
    package var state: String
    /// Majorities are of it, and receipts wait for it.
    package var isCounted: Bool
    /// Since it was asked last which invalidations it has, and answered; nil if it never did.
    package var contactMilliseconds: Int64?
    /// What it declares.
    package var weight: Int
    /// What of ``weight`` the ring counts; nil from a node that does not say.
    package var countedWeight: Int?
    package var isCaughtUp: Bool
    package var isDraining: Bool
    /// The node that is asked.
    package var isSelf: Bool
    /// There is a connection with it.
    package var isConnected: Bool
    /// What it owns first of all keys, from 0 to 1.
    package var ringShare: Double
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
        self.isCounted = isCounted
        self.contactMilliseconds = contactMilliseconds
        self.weight = weight
        self.countedWeight = countedWeight ?? weight
        self.isCaughtUp = isCaughtUp
        self.isDraining = isDraining
        self.isSelf = isSelf
        self.isConnected = isConnected
        self.ringShare = ringShare
        self.lagRecords = lagRecords
    }

    /// `{"members": […]}`, one object a line; none for a node that is in no cluster.
    package static func json(_ rows: [MemberRow]) -> JSON {
        ["members": .list(rows.map(\.json))]
    }

    package var json: JSON {
        [
            "node": .text(node), "process": .text(process), "address": .text(address),
            "state": .text(state), "counted": .bool(isCounted),
            "contact_ms_ago": JSON(contactMilliseconds), "self": .bool(isSelf),
            "connected": .bool(isConnected), "caught_up": .bool(isCaughtUp),
            "draining": .bool(isDraining), "weight": JSON(weight),
            "weight_counted": JSON(countedWeight ?? weight),
            "ring_share": .decimal(ringShare), "lag_records": JSON(lagRecords),
        ]
    }

    static let shape = Shape.object(.has("members", Shape.list(of: rowShape)))

    static let rowShape = Shape.object(
        .has("node", Shape.id), .has("process", Shape.string), .has("address", Shape.string),
        .has("state", Shape.choice(["alive", "suspected", "dead", "left", "unknown"])),
        .has("counted", Shape.boolean, "Majorities are of it, and receipts wait for it"),
        .has(
            "contact_ms_ago", Shape.orNull(Shape.count),
            "Since it was asked last which invalidations it has, and answered"),
        .has("self", Shape.boolean, "The node that is asked"),
        .has("connected", Shape.boolean), .has("caught_up", Shape.boolean),
        .has("draining", Shape.boolean), .has("weight", Shape.count),
        .has("weight_counted", Shape.count, "What of the weight the ring counts"),
        .has("ring_share", Shape.share, "What it owns first of all keys"),
        .has(
            "lag_records", Shape.orNull(Shape.count),
            "Invalidations that are synced here and that it has not confirmed"))
}

extension MemberRow: Decodable {
    private enum CodingKeys: String, CodingKey {
        case node, process, address, state, weight
        case isCounted = "counted"
        case contactMilliseconds = "contact_ms_ago"
        case countedWeight = "weight_counted"
        case isCaughtUp = "caught_up"
        case isDraining = "draining"
        case isSelf = "self"
        case isConnected = "connected"
        case ringShare = "ring_share"
        case lagRecords = "lag_records"
    }
}
