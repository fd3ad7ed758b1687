package import Ground
import HTTPRules

/// How far one purge has come, as the node that is asked sees it; <doc:Purges> has every field.
///
/// All times are milliseconds that this node has measured; no clock of another node is in them.
package struct ReceiptDocument: Hashable, Sendable {
    package enum ConfirmationState: Hashable, Sendable {
        /// It has applied and synced the purge; this node learnt so that long after it had the
        /// purge itself.
        case confirmed(elapsedMilliseconds: Int64)
        /// There is a connection with it, and it has not said so.
        case pending
        /// There is no connection with it since that long, and it has not said so.
        case unreachable(sinceMillisecondsAgo: Int64)
    }

    package struct Member: Hashable, Sendable {
        /// 32 hexadecimal digits.
        package var node: String
        package var state: ConfirmationState

        package init(node: String, _ standing: ConfirmationState) {
            self.node = node
            self.state = standing
        }
    }

    package var name: ReceiptID
    /// The client's, or the node's that took the purge.
    package var id: [UInt8]
    package var isSoft: Bool
    /// As the record has them.
    package var targets: [PurgeTarget]
    /// The node that issued it, 32 hexadecimal digits; nil if it is of a process that is not known
    /// here any more.
    package var issuer: String?
    /// The node whose view this is, 32 hexadecimal digits: what others have learnt may differ.
    package var observer: String
    /// How long this node has had it.
    package var ageMilliseconds: Int64
    /// How long after that a majority of the counted members had it; nil if it has not.
    package var majorityMilliseconds: Int64?
    /// In how long, from now, no node serves what is covered, whether it has confirmed or not; 0 if
    /// that is so, nil if there is no majority yet or no fence.
    package var millisecondsUntilBounded: Int64?
    /// Everybody who can serve, by node id.
    package var members: [Member]
    /// Nobody else can serve.
    ///
    /// False for up to two fences after more than half of the counted members have started anew or
    /// were replaced, for nobody may know whom they had answered before.
    package var areMembersKnown: Bool

    package init(
        _ name: ReceiptID, id: [UInt8], isSoft: Bool, targets: [PurgeTarget], issuedBy: String?,
        seenBy: String, heldMilliseconds: Int64, majorityMilliseconds: Int64?,
        boundedInMilliseconds: Int64?,
        members: [Member], areMembersKnown: Bool = true
    ) {
        self.name = name
        self.id = id
        self.isSoft = isSoft
        self.targets = targets
        self.issuer = issuedBy
        self.observer = seenBy
        self.ageMilliseconds = heldMilliseconds
        self.majorityMilliseconds = majorityMilliseconds
        self.millisecondsUntilBounded = boundedInMilliseconds
        self.members = members
        self.areMembersKnown = areMembersKnown
    }

    /// The members that have confirmed, that are pending, and that cannot be reached.
    package var counts: (confirmed: Int, pending: Int, unreachable: Int) {
        members.reduce(into: (0, 0, 0)) { counts, member in
            switch member.state {
            case .confirmed: counts.0 += 1
            case .pending: counts.1 += 1
            case .unreachable: counts.2 += 1
            }
        }
    }

    /// Every node that can serve has it; a node that knows of no majority cannot say so.
    package var isFullyConfirmed: Bool {
        majorityMilliseconds != nil && areMembersKnown && !members.isEmpty
            && counts.confirmed == members.count
    }

    /// The answer to who has issued it: 200 if all have confirmed, else 202, whatever was waited
    /// for.
    ///
    /// To who asks for the receipt it is 200.
    package var issueStatusCode: UInt16 { isFullyConfirmed ? 200 : 202 }
}

extension ReceiptDocument {
    package var json: JSON {
        let counts = counts
        return [
            "receipt": .text("\(name)"), "id": JSON(id), "mode": isSoft ? "soft" : "hard",
            "issued_by": JSON(issuer), "seen_by": .text(observer),
            "held_ms": .number(ageMilliseconds),
            "all_confirmed": .bool(isFullyConfirmed), "confirmed": JSON(counts.confirmed),
            "pending": JSON(counts.pending), "unreachable": JSON(counts.unreachable),
            "majority_ms": JSON(majorityMilliseconds),
            "bounded_in_ms": JSON(millisecondsUntilBounded),
            "members_known": .bool(areMembersKnown), "members": .list(members.map(\.json)),
            "targets": .list(targets.map(Self.json)),
        ]
    }

    /// `{"purges": […]}`, one receipt a line.
    package static func json(_ receipts: [ReceiptDocument]) -> JSON {
        ["purges": .list(receipts.map(\.json))]
    }

    private static func json(_ target: PurgeTarget) -> JSON {
        switch target {
        case .url(let name): ["url": JSON(Array("//".utf8) + name)]
        case .prefix(let host, let path): ["prefix": JSON(Array("//".utf8) + host + path)]
        case .tag(let tag): ["tag": JSON(tag)]
        case .everything: ["everything": true]
        }
    }

    static let schema = JSONSchema.object(
        .required("receipt", ReceiptID.schema),
        .required("id", JSONSchema.string, "The client's, or the one that the node made"),
        .required("mode", JSONSchema.enumeration(["hard", "soft"])),
        .required("issued_by", JSONSchema.nullable(JSONSchema.id)),
        .required(
            "seen_by", JSONSchema.id, "The node whose view this is; all times are of its clock"),
        .required("held_ms", JSONSchema.count, "How long this node has had it"),
        .required(
            "all_confirmed", JSONSchema.boolean,
            "Every node that can serve has applied and synced it"),
        .required("confirmed", JSONSchema.count), .required("pending", JSONSchema.count),
        .required("unreachable", JSONSchema.count),
        .required(
            "majority_ms", JSONSchema.nullable(JSONSchema.count), "After that a majority had it"),
        .required(
            "bounded_in_ms", JSONSchema.nullable(JSONSchema.count),
            "In how long, from now, no node serves what is covered"),
        .required("members_known", JSONSchema.boolean, "Nobody else can serve"),
        .required("members", JSONSchema.list(of: Member.schema)),
        .required("targets", JSONSchema.list(of: PurgeRequest.targetSchema)))

    static let listSchema = JSONSchema.object(.required("purges", JSONSchema.list(of: schema)))
}

extension ReceiptDocument.Member {
    fileprivate var json: JSON {
        switch state {
        case .confirmed(let milliseconds):
            ["node": .text(node), "standing": "confirmed", "elapsed_ms": .number(milliseconds)]
        case .pending: ["node": .text(node), "standing": "pending"]
        case .unreachable(let milliseconds):
            [
                "node": .text(node), "standing": "unreachable",
                "unreachable_since_ms_ago": .number(milliseconds),
            ]
        }
    }

    fileprivate static let schema = JSONSchema.object(
        .required("node", JSONSchema.id),
        .required("standing", JSONSchema.enumeration(["confirmed", "pending", "unreachable"])),
        .optional("elapsed_ms", JSONSchema.count),
        .optional("unreachable_since_ms_ago", JSONSchema.count))
}

extension PurgeRequest {
    /// What every URL begins with; what else it must be no pattern says.
    private static let url = #"^([Hh][Tt][Tt][Pp][Ss]?:)?//[^\x00-\x1f\x7f]+$"#
    private static let prefix = #"^[^\x00-\x1f\x7f?#]+$"#
    /// No control characters, and no white space at its ends.
    private static let tag = #"^[^\x00-\x20\x7f]([^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?$"#
    private static let id = #"^[^\x00-\x1f\x7f]+$"#

    static let targetSchema = JSONSchema.anyOf(
        JSONSchema.object(.required("url", JSONSchema.text(length: 1...8192, pattern: url))),
        JSONSchema.object(.required("prefix", JSONSchema.text(length: 1...8192, pattern: prefix))),
        JSONSchema.object(.required("tag", JSONSchema.text(length: 1...1024, pattern: tag))),
        JSONSchema.object(.required("everything", ["const": true])))

    static let schema = JSONSchema.object(
        .optional(
            "id", JSONSchema.text(length: 1...idBytesMax, pattern: id), "Makes a repeat harmless"),
        .optional("mode", JSONSchema.enumeration(["hard", "soft"])),
        .required("targets", JSONSchema.list(of: targetSchema, count: 1...targetsMax)),
        .optional("wait", JSONSchema.enumeration(PurgeAcknowledgement.allCases.map(\.rawValue))),
        .optional("timeout_ms", JSONSchema.integer(0...60_000)))
}

/// Names the receipt of a purge, at every node the same: the process that issued it and its number
/// in that process's stream; `0123456789abcdef0123456789abcdef-17` as text.
package struct ReceiptID: Hashable, Sendable, CustomStringConvertible {
    /// The 128 bits of the process id.
    package let high: UInt64
    package let low: UInt64
    /// From 1.
    package let number: UInt64

    package init(high: UInt64, low: UInt64, number: UInt64) {
        self.high = high
        self.low = low
        self.number = number
    }

    /// The name that `text` spells; nil if it is none.
    ///
    /// A name has one spelling: lower case, and no leading zeros in its number.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count > 33, bytes.count <= 33 + 20, bytes[32] == UInt8(ascii: "-"),
            bytes[33] != UInt8(ascii: "0"), let number = bytes.span.decimal(at: 33..<bytes.count)
        else { return nil }
        var words: [UInt64] = [0, 0]
        for index in 0..<32 {
            guard let digit = ASCII.hexValue(bytes[index]),
                bytes[index] == ASCII.hexDigit(digit)
            else { return nil }
            words[index / 16] = words[index / 16] << 4 | UInt64(digit)
        }
        self.init(high: words[0], low: words[1], number: number)
    }

    static let schema = JSONSchema.text(pattern: "^[0-9a-f]{32}-[1-9][0-9]{0,18}$")

    package var description: String { hexadecimal(high) + hexadecimal(low) + "-\(number)" }
}
