import Ground
import HTTPRules

extension ReceiptDocument {
    package var json: JSON {
        let counts = counts
        return [
            "receipt": .text("\(name)"), "id": JSON(id), "mode": isSoft ? "soft" : "hard",
            "issued_by": JSON(issuedBy), "seen_by": .text(seenBy),
            "held_ms": .number(heldMilliseconds),
            "all_confirmed": .bool(isConfirmedByAll), "confirmed": JSON(counts.confirmed),
            "pending": JSON(counts.pending), "unreachable": JSON(counts.unreachable),
            "majority_ms": JSON(majorityMilliseconds),
            "bounded_in_ms": JSON(boundedInMilliseconds),
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

    static let shape = Shape.object(
        .has("receipt", ReceiptName.shape),
        .has("id", Shape.string, "The client's, or the one that the node made"),
        .has("mode", Shape.choice(["hard", "soft"])),
        .has("issued_by", Shape.orNull(Shape.id)),
        .has("seen_by", Shape.id, "The node whose view this is; all times are of its clock"),
        .has("held_ms", Shape.count, "How long this node has had it"),
        .has("all_confirmed", Shape.boolean, "Every node that can serve has applied and synced it"),
        .has("confirmed", Shape.count), .has("pending", Shape.count),
        .has("unreachable", Shape.count),
        .has("majority_ms", Shape.orNull(Shape.count), "After that a majority had it"),
        .has(
            "bounded_in_ms", Shape.orNull(Shape.count),
            "In how long, from now, no node serves what is covered"),
        .has("members_known", Shape.boolean, "Nobody else can serve"),
        .has("members", Shape.list(of: Member.shape)),
        .has("targets", Shape.list(of: PurgeRequest.targetShape)))

    static let listShape = Shape.object(.has("purges", Shape.list(of: shape)))
}

extension ReceiptDocument.Member {
    fileprivate var json: JSON {
        switch standing {
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

    fileprivate static let shape = Shape.object(
        .has("node", Shape.id),
        .has("standing", Shape.choice(["confirmed", "pending", "unreachable"])),
        .may("elapsed_ms", Shape.count), .may("unreachable_since_ms_ago", Shape.count))
}

extension PurgeRequest {
    /// What every URL begins with; what else it must be no pattern says.
    private static let url = #"^([Hh][Tt][Tt][Pp][Ss]?:)?//[^\x00-\x1f\x7f]+$"#
    private static let prefix = #"^[^\x00-\x1f\x7f?#]+$"#
    /// No control characters, and no white space at its ends.
    private static let tag = #"^[^\x00-\x20\x7f]([^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?$"#
    private static let id = #"^[^\x00-\x1f\x7f]+$"#

    static let targetShape = Shape.anyOf(
        Shape.object(.has("url", Shape.text(length: 1...8192, pattern: url))),
        Shape.object(.has("prefix", Shape.text(length: 1...8192, pattern: prefix))),
        Shape.object(.has("tag", Shape.text(length: 1...1024, pattern: tag))),
        Shape.object(.has("everything", ["const": true])))

    static let shape = Shape.object(
        .may("id", Shape.text(length: 1...idBytesMax, pattern: id), "Makes a repeat harmless"),
        .may("mode", Shape.choice(["hard", "soft"])),
        .has("targets", Shape.list(of: targetShape, count: 1...targetsMax)),
        .may("wait", Shape.choice(PurgeWait.allCases.map(\.rawValue))),
        .may("timeout_ms", Shape.integer(0...60_000)))
}
