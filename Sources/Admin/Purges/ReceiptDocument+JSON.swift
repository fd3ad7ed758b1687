import Ground
import HTTPRules

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
