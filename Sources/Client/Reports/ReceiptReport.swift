/// A receipt as who has asked for it reads it; ``ReceiptDocument`` is what writes it.
package struct ReceiptReport: Hashable, Sendable, Decodable {
    package struct Member: Hashable, Sendable, Decodable {
        package var node: String
        /// `confirmed`, `pending` or `unreachable`.
        package var state: String
        package var elapsedMilliseconds: Int64?
        package var unreachableMilliseconds: Int64?

        private enum CodingKeys: String, CodingKey {
            case node
            case state = "standing"
            case elapsedMilliseconds = "elapsed_ms"
            case unreachableMilliseconds = "unreachable_since_ms_ago"
        }
    }

    /// One of the four.
    package struct Target: Hashable, Sendable, Decodable {
        package var url: String?
        package var prefix: String?
        package var tag: String?
        package var everything: Bool?

        /// What it covers, in a few words.
        package var summary: String {
            if let url { return "url \(url)" }
            if let prefix { return "prefix \(prefix)" }
            return tag.map { "tag \($0)" } ?? "everything"
        }

        /// Greater for what may cover more.
        fileprivate var breadth: Int {
            if url != nil { return 0 }
            if prefix != nil { return 2 }
            return tag == nil ? 3 : 1
        }
    }

    package struct Page: Decodable {
        package var purges: [ReceiptReport]
    }

    package var receipt: String
    package var id: String
    package var mode: String
    package var issuer: String?
    /// The node that was asked; nil if it is of a version that does not say so.
    package var observer: String?
    package var ageMilliseconds: Int64
    package var isFullyConfirmed: Bool
    package var confirmed: Int
    package var pending: Int
    package var unreachable: Int
    package var majorityMilliseconds: Int64?
    package var millisecondsUntilBounded: Int64?
    package var members: [Member]
    package var areMembersKnown: Bool?
    package var targets: [Target]

    private enum CodingKeys: String, CodingKey {
        case receipt, id, mode, confirmed, pending, unreachable, members, targets
        case issuer = "issued_by"
        case observer = "seen_by"
        case ageMilliseconds = "held_ms"
        case isFullyConfirmed = "all_confirmed"
        case areMembersKnown = "members_known"
        case majorityMilliseconds = "majority_ms"
        case millisecondsUntilBounded = "bounded_in_ms"
    }

    /// What it covers, in a few words: the broadest target, and how many there are besides; empty
    /// for none.
    package var targetSummary: (main: String, more: String) {
        guard let broadest = targets.max(by: { $0.breadth < $1.breadth }) else { return ("", "") }
        return (broadest.summary, targets.count > 1 ? " and \(targets.count - 1) more" : "")
    }

    /// Nobody who can be reached is waited for: what is missing will not come soon.
    package var isSettled: Bool { isFullyConfirmed || (pending == 0 && unreachable > 0) }
}

/// How far a purge has come, for people.
extension ReceiptReport {
    /// What it is, then a line for each member; `own` is the node that was asked, if it is known.
    package func lines(columnsMax: Int?) -> [TextLine] {
        var table = Table([.flexible("MEMBER"), .left("STANDING"), .right("AFTER")])
        for member in members { table.append(member.cells) }
        return [headline, targetsLine.truncated(to: columnsMax ?? .max)] + viewLines
            + table.lines(columnsMax: columnsMax) + [summary]
    }

    private var headline: TextLine {
        TextLine("\(mode) purge ", .strong) + TextLine(id, .strong)
            + TextLine("  receipt \(receipt)", .faint)
    }

    /// Whose view it is, where that is not the issuer's.
    private var viewLines: [TextLine] {
        guard let observer, let issuer, observer != issuer else { return [] }
        return [TextLine("issued by \(issuer), as \(observer) sees it", .faint)]
    }

    private var targetsLine: TextLine {
        TextLine(targetSummary.main) + TextLine(targetSummary.more, .faint)
    }

    /// Who has it, and from when on nobody serves what it covers.
    package var summary: TextLine {
        if isFullyConfirmed {
            return TextLine("confirmed by all \(confirmed)", .good)
                + TextLine(
                    slowest.map { " within \(NumberFormat.duration(milliseconds: $0))" } ?? "")
        }
        var line = TextLine("\(confirmed) of \(members.count) confirmed", .warning)
        if pending > 0 { line.append("; \(pending) pending") }
        if unreachable > 0 {
            line.append("; ")
            line.append("\(unreachable) unreachable", .bad)
        }
        if areMembersKnown == false {
            line.append("; there may be others: most members have just started")
        }
        switch millisecondsUntilBounded {
        case .some(0): line.append("; no node serves what it covers")
        case .some(let left):
            line.append(
                "; no node serves what it covers in "
                    + "\(NumberFormat.duration(milliseconds: left)) from now")
        case nil where majorityMilliseconds == nil: line.append("; no majority has it yet")
        case nil: break
        }
        return line
    }

    private var slowest: Int64? { members.compactMap(\.elapsedMilliseconds).max() }

    /// One line that fills in while members confirm.
    package func progress(columnsMax: Int) -> TextLine {
        let share = members.isEmpty ? 0 : Double(confirmed) / Double(members.count)
        var note = "\(confirmed)/\(members.count) confirmed"
        if unreachable > 0 { note += ", \(unreachable) unreachable" }
        return ProgressLine.line("purging", share: share, note: note, columnsMax: columnsMax)
    }
}

extension ReceiptReport.Member {
    fileprivate var cells: [TextLine] {
        switch state {
        case "confirmed":
            let after = elapsedMilliseconds.map { NumberFormat.duration(milliseconds: $0) } ?? "–"
            return [TextLine(node), TextLine(state, .good), TextLine(after)]
        case "unreachable":
            let time =
                unreachableMilliseconds.map { NumberFormat.duration(milliseconds: $0) } ?? "–"
            return [TextLine(node), TextLine(state, .bad), TextLine("for \(time)")]
        default: return [TextLine(node), TextLine(state, .warning), TextLine("–")]
        }
    }
}
