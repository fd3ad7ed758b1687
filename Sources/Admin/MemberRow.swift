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
    package var weight: Int
    package var isCaughtUp: Bool
    package var isDraining: Bool
    /// The node that is asked.
    package var isSelf: Bool
    /// There is a connection with it.
    package var isConnected: Bool
    /// What it owns first of all keys, from 0 to 1.
    package var ringShare: Double

    package init(
        node: String, process: String, address: String, state: String, isCounted: Bool,
        contactMilliseconds: Int64?, weight: Int, isCaughtUp: Bool, isDraining: Bool, isSelf: Bool,
        isConnected: Bool, ringShare: Double
    ) {
        self.node = node
        self.process = process
        self.address = address
        self.state = state
        self.isCounted = isCounted
        self.contactMilliseconds = contactMilliseconds
        self.weight = weight
        self.isCaughtUp = isCaughtUp
        self.isDraining = isDraining
        self.isSelf = isSelf
        self.isConnected = isConnected
        self.ringShare = ringShare
    }

    /// `{"members": […]}`, one object a line; none for a node that is in no cluster.
    static func json(_ rows: [MemberRow]) -> String {
        let objects = rows.map { row in
            let fields = [
                "\"node\":\"\(row.node)\"", "\"process\":\"\(row.process)\"",
                "\"address\":\"\(row.address)\"", "\"state\":\"\(row.state)\"",
                "\"counted\":\(row.isCounted)",
                "\"contact_ms_ago\":\(row.contactMilliseconds.map { "\($0)" } ?? "null")",
                "\"self\":\(row.isSelf)", "\"connected\":\(row.isConnected)",
                "\"caught_up\":\(row.isCaughtUp)", "\"draining\":\(row.isDraining)",
                "\"weight\":\(row.weight)", "\"ring_share\":\(decimal(row.ringShare))",
            ]
            return "{" + fields.joined(separator: ",") + "}"
        }
        return "{\"members\":[" + objects.map { "\n" + $0 }.joined(separator: ",") + "\n]}\n"
    }

    /// With six digits behind the point, rounded down.
    private static func decimal(_ share: Double) -> String {
        let millionths = Int(share * 1_000_000)
        let digits = String(millionths % 1_000_000)
        return "\(millionths / 1_000_000)."
            + String(repeating: "0", count: 6 - digits.count) + digits
    }
}

extension MemberRow: Decodable {
    private enum CodingKeys: String, CodingKey {
        case node, process, address, state, weight
        case isCounted = "counted"
        case contactMilliseconds = "contact_ms_ago"
        case isCaughtUp = "caught_up"
        case isDraining = "draining"
        case isSelf = "self"
        case isConnected = "connected"
        case ringShare = "ring_share"
    }
}
