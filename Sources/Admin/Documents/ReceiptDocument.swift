package import Ground
import HTTPRules

/// The progress of one purge, as this node sees it; <doc:Purges> lists every field.
///
/// All times are milliseconds measured by this node; no other node's clock is involved.
package struct ReceiptDocument: ListedDocument {
    /// One member that can serve clients, and the progress of the purge there.
    package struct Member: AdminDocument {
        /// The member's node id, 32 hexadecimal digits.
        package var node = ""
        /// The state: `confirmed`, `pending` or `unreachable`.
        package var state = "pending"
        /// The time in milliseconds from when this node had the purge until it learnt that the
        /// member has applied and synced it; `nil` if it has not confirmed.
        package var elapsedMilliseconds: Int64?
        /// The time in milliseconds since the member was disconnected; `nil` if it is connected, or
        /// has confirmed.
        package var unreachableMilliseconds: Int64?

        /// Creates a pending member without an id.
        package init() {}

        /// Creates a member that is connected, and has not confirmed.
        package init(pending node: String) {
            self.node = node
        }

        /// Creates a member that has confirmed after a time.
        package init(confirmed node: String, elapsedMilliseconds: Int64) {
            (self.node, state) = (node, "confirmed")
            self.elapsedMilliseconds = elapsedMilliseconds
        }

        /// Creates a member that was disconnected some time ago, and has not confirmed.
        package init(unreachable node: String, sinceMillisecondsAgo: Int64) {
            (self.node, state) = (node, "unreachable")
            unreachableMilliseconds = sinceMillisecondsAgo
        }

        /// The members of the JSON object.
        package static let fields: [Field] = [
            .required("node", \.node, as: .id),
            .required(
                "standing", \.state, as: .enumeration(["confirmed", "pending", "unreachable"])),
            .optional("elapsed_ms", \.elapsedMilliseconds),
            .optional("unreachable_since_ms_ago", \.unreachableMilliseconds),
        ]
    }

    /// A target of a purge; one of the four is set.
    package struct Target: AdminDocument {
        /// The URL.
        package var url: String?
        /// The URL prefix.
        package var prefix: String?
        /// The tag.
        package var tag: String?
        /// True for everything.
        package var everything: Bool?

        /// Creates a target with nothing set.
        package init() {}

        /// Creates a target as recorded; invalid UTF-8 becomes U+FFFD.
        package init(_ target: PurgeTarget) {
            switch target {
            case .url(let name): url = "//" + String(decoding: name, as: UTF8.self)
            case .prefix(let host, let path):
                prefix = "//" + String(decoding: host + path, as: UTF8.self)
            case .tag(let name): tag = String(decoding: name, as: UTF8.self)
            case .everything: everything = true
            }
        }

        /// The members.
        package static let fields: [Field] = [
            .optional("url", \.url), .optional("prefix", \.prefix), .optional("tag", \.tag),
            .optional("everything", \.everything),
        ]
    }

    /// The name of the receipt, as ``ReceiptID`` spells it.
    package var receipt = ""
    /// The id of the purge: the client's, or the one that the accepting node made.
    package var id = ""
    /// The mode: `soft` marks entries as stale, `hard` removes them.
    package var mode = "hard"
    /// The node that issued the purge, 32 hexadecimal digits; `nil` if its process is no longer
    /// known here.
    package var issuer: String?
    /// The node whose view this is, 32 hexadecimal digits; other nodes may know more or less.
    ///
    /// Empty from a node of an older version.
    package var observer = ""
    /// The time in milliseconds since this node received the purge.
    package var ageMilliseconds: Int64 = 0
    /// The time in milliseconds from then until a majority of the voters had it; `nil` if it has
    /// not.
    package var majorityMilliseconds: Int64?
    /// The time in milliseconds, from now, after which no node serves the purged entries, confirmed
    /// or not.
    ///
    /// 0 if that holds already; `nil` while there is no majority, or no fence.
    package var millisecondsUntilBounded: Int64?
    /// True if no node outside ``members`` can serve.
    ///
    /// False for up to two fence durations after more than half of the voters restarted or were
    /// replaced, because it is then unknown whom the former voters had replied to.
    package var areMembersKnown = true
    /// All members that can serve clients, ordered by node id.
    package var members: [Member] = []
    /// The targets, as recorded.
    package var targets: [Target] = []

    /// Creates the receipt of no purge.
    package init() {}

    /// The name of the list.
    package static let listName = "purges"

    /// The members of the JSON object.
    package static let fields: [Field] = [
        .required("receipt", \.receipt, as: ReceiptID.schema),
        .required("id", \.id, "The id that the client gave, or the one that the node generated"),
        .required("mode", \.mode, as: .enumeration(["hard", "soft"])),
        .nullable("issued_by", \.issuer, as: .id),
        .required(
            "seen_by", \.observer, "The node whose view this is; all times are measured by it",
            as: .id, isLenient: true),
        .required("held_ms", \.ageMilliseconds, "Time since this node received the purge"),
        .derived(
            "all_confirmed", \.isFullyConfirmed,
            "Every node that can serve has applied and synced the purge"),
        .derived("confirmed", \.confirmed),
        .derived("pending", \.pending),
        .derived("unreachable", \.unreachable),
        .nullable(
            "majority_ms", \.majorityMilliseconds,
            "Time until a majority of voters had the purge; null if none has"),
        .nullable(
            "bounded_in_ms", \.millisecondsUntilBounded,
            "Time from now after which no node serves the purged entries, confirmed or not"),
        .required(
            "members_known", \.areMembersKnown, "No node outside members can serve", isLenient: true
        ),
        .required("members", \.members),
        .required("targets", \.targets, as: .list(of: PurgeRequest.targetSchema)),
    ]

    /// The number of members that have confirmed.
    package var confirmed: Int { members.count { $0.state == "confirmed" } }
    /// The number of connected members that have not confirmed.
    package var pending: Int { members.count - confirmed - unreachable }
    /// The number of unreachable members.
    package var unreachable: Int { members.count { $0.state == "unreachable" } }

    /// True if every node that can serve has confirmed the purge; false while no majority is known
    /// to have it, or not all members are known.
    package var isFullyConfirmed: Bool {
        majorityMilliseconds != nil && areMembersKnown && !members.isEmpty
            && confirmed == members.count
    }

    /// The status of the response to the purge: 200 if all have confirmed, else 202, independent of
    /// the requested acknowledgement.
    ///
    /// A request for the receipt gets 200.
    package var issueStatusCode: UInt16 { isFullyConfirmed ? 200 : 202 }
}

extension PurgeRequest {
    /// A pattern that every valid URL matches; it does not express the remaining rules.
    private static let url = #"^([Hh][Tt][Tt][Pp][Ss]?:)?//[^\x00-\x1f\x7f]+$"#
    private static let prefix = #"^[^\x00-\x1f\x7f?#]+$"#
    /// A tag without control characters, and without white space at its ends.
    private static let tag = #"^[^\x00-\x20\x7f]([^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?$"#
    private static let id = #"^[^\x00-\x1f\x7f]+$"#

    static let targetSchema = JSONSchema.anyOf(
        .object(.required("url", .text(length: 1...8192, pattern: url))),
        .object(.required("prefix", .text(length: 1...8192, pattern: prefix))),
        .object(.required("tag", .text(length: 1...1024, pattern: tag))),
        .object(.required("everything", .alwaysTrue)))

    static let schema = JSONSchema.object(
        .optional(
            "id", .text(length: 1...idBytesMax, pattern: id), "Makes repeated requests idempotent"),
        .optional("mode", .enumeration(["hard", "soft"])),
        .required("targets", .list(of: targetSchema, count: 1...targetsMax)),
        .optional("wait", .enumeration(PurgeAcknowledgement.allCases.map(\.rawValue))),
        .optional("timeout_ms", .integer(0...60_000)))
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
