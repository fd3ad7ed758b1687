package import Ground
import HTTPRules

/// The progress of one purge, as this node sees it; <doc:Purges> lists every field.
///
/// All times are milliseconds measured by this node; no other node's clock is involved.
package struct ReceiptDocument: Hashable, Sendable {
    /// The progress of the purge at one member.
    package enum ConfirmationState: Hashable, Sendable {
        /// The member has applied and synced the purge; this node learnt of it
        /// `elapsedMilliseconds` after it had the purge itself.
        case confirmed(elapsedMilliseconds: Int64)
        /// The member is connected, and has not confirmed.
        case pending
        /// The member has been disconnected for `sinceMillisecondsAgo`, and has not confirmed.
        case unreachable(sinceMillisecondsAgo: Int64)
    }

    /// One member that can serve clients, and its confirmation.
    package struct Member: Hashable, Sendable {
        /// The member's node id, 32 hexadecimal digits.
        package var node: String
        /// The progress of the purge at the member.
        package var state: ConfirmationState

        /// Creates a row from its parts.
        package init(node: String, _ standing: ConfirmationState) {
            self.node = node
            self.state = standing
        }
    }

    /// The name of the receipt.
    package var name: ReceiptID
    /// The id of the purge: the client's, or the one that the accepting node made.
    package var id: [UInt8]
    /// True for a soft purge, which marks entries as stale; false for a hard one.
    package var isSoft: Bool
    /// The targets, as recorded.
    package var targets: [PurgeTarget]
    /// The node that issued the purge, 32 hexadecimal digits; `nil` if its process is no longer
    /// known here.
    package var issuer: String?
    /// The node whose view this is, 32 hexadecimal digits; other nodes may know more or less.
    package var observer: String
    /// The time in milliseconds since this node received the purge.
    package var ageMilliseconds: Int64
    /// The time in milliseconds from then until a majority of the voters had it; `nil` if it has
    /// not.
    package var majorityMilliseconds: Int64?
    /// The time in milliseconds, from now, after which no node serves the purged entries, confirmed
    /// or not.
    ///
    /// 0 if that holds already; `nil` while there is no majority, or no fence.
    package var millisecondsUntilBounded: Int64?
    /// All members that can serve clients, ordered by node id.
    package var members: [Member]
    /// True if no node outside ``members`` can serve.
    ///
    /// False for up to two fence durations after more than half of the voters restarted or were
    /// replaced, because it is then unknown whom the former voters had replied to.
    package var areMembersKnown: Bool

    /// Creates the document from its parts; times are in milliseconds.
    ///
    /// - Parameters:
    ///   - name: the receipt's name.
    ///   - id: the purge's id.
    ///   - isSoft: true for a soft purge.
    ///   - targets: the recorded targets.
    ///   - issuer: the id of the issuing node.
    ///   - observer: the id of this node.
    ///   - ageMilliseconds: the value of ``ageMilliseconds``.
    ///   - majorityMilliseconds: the value of ``majorityMilliseconds``.
    ///   - millisecondsUntilBounded: the value of ``millisecondsUntilBounded``.
    ///   - members: the members that can serve.
    ///   - areMembersKnown: true if no other node can serve.
    package init(
        _ name: ReceiptID, id: [UInt8], isSoft: Bool, targets: [PurgeTarget], issuer: String?,
        observer: String, ageMilliseconds: Int64, majorityMilliseconds: Int64?,
        millisecondsUntilBounded: Int64?,
        members: [Member], areMembersKnown: Bool = true
    ) {
        self.name = name
        self.id = id
        self.isSoft = isSoft
        self.targets = targets
        self.issuer = issuer
        self.observer = observer
        self.ageMilliseconds = ageMilliseconds
        self.majorityMilliseconds = majorityMilliseconds
        self.millisecondsUntilBounded = millisecondsUntilBounded
        self.members = members
        self.areMembersKnown = areMembersKnown
    }

    /// The numbers of members that have confirmed, are pending, and are unreachable.
    package var counts: (confirmed: Int, pending: Int, unreachable: Int) {
        members.reduce(into: (0, 0, 0)) { counts, member in
            switch member.state {
            case .confirmed: counts.0 += 1
            case .pending: counts.1 += 1
            case .unreachable: counts.2 += 1
            }
        }
    }

    /// True if every node that can serve has the purge; false while no majority is known.
    package var isFullyConfirmed: Bool {
        majorityMilliseconds != nil && areMembersKnown && !members.isEmpty
            && counts.confirmed == members.count
    }

    /// The status of the response to the purge: 200 if all have confirmed, else 202, independent of
    /// the requested acknowledgement.
    ///
    /// A request for the receipt gets 200.
    package var issueStatusCode: UInt16 { isFullyConfirmed ? 200 : 202 }
}

extension ReceiptDocument {
    /// The document as JSON.
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

    /// Returns `{"purges": […]}`, one receipt per line.
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
    /// The prefix of every URL; the pattern does not express the remaining rules.
    private static let url = #"^([Hh][Tt][Tt][Pp][Ss]?:)?//[^\x00-\x1f\x7f]+$"#
    private static let prefix = #"^[^\x00-\x1f\x7f?#]+$"#
    /// A tag without control characters, and without white space at its ends.
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

/// The name of a purge's receipt, the same at every node.
///
/// The issuing process and the purge's number in that process's stream; as text
/// `0123456789abcdef0123456789abcdef-17`.
package struct ReceiptID: Hashable, Sendable, CustomStringConvertible {
    /// The upper 64 bits of the process id.
    package let high: UInt64
    /// The lower 64 bits of the process id.
    package let low: UInt64
    /// The purge's number in the stream of its process, from 1.
    package let number: UInt64

    /// Creates a name from its parts.
    package init(high: UInt64, low: UInt64, number: UInt64) {
        self.high = high
        self.low = low
        self.number = number
    }

    /// Creates the name that `text` spells; `nil` if it is not a receipt name.
    ///
    /// Each name has one spelling: lower case, and no leading zeros in the number.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count > 33, bytes.count <= 33 + 20, bytes[32] == UInt8(ascii: "-"),
            bytes[33] != UInt8(ascii: "0"), let process = bytes.span.hexadecimal(at: 0..<32),
            let number = bytes.span.decimal(at: 33..<bytes.count)
        else { return nil }
        self.init(
            high: UInt64(process >> 64), low: UInt64(truncatingIfNeeded: process), number: number)
    }

    static let schema = JSONSchema.text(pattern: "^[0-9a-f]{32}-[1-9][0-9]{0,19}$")

    /// The name as 32 hexadecimal digits, a hyphen and the number.
    package var description: String { hexadecimal(high) + hexadecimal(low) + "-\(number)" }
}
