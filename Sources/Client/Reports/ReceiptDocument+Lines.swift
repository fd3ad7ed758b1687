package import Admin

extension ReceiptDocument.Target {
    /// The target in a few words.
    package var summary: String {
        if let url { return "url \(url)" }
        if let prefix { return "prefix \(prefix)" }
        return tag.map { "tag \($0)" } ?? "everything"
    }

    /// The rank of the target, greater for one that may cover more.
    fileprivate var breadth: Int {
        if url != nil { return 0 }
        if prefix != nil { return 2 }
        return tag == nil ? 3 : 1
    }
}

/// The progress of a purge for people.
extension ReceiptDocument {
    /// The broadest target in a few words and the number of others; empty without targets.
    package var targetSummary: (main: String, more: String) {
        guard let broadest = targets.max(by: { $0.breadth < $1.breadth }) else { return ("", "") }
        return (broadest.summary, targets.count > 1 ? " and \(targets.count - 1) more" : "")
    }

    /// True if all members have confirmed the purge, or all but unreachable ones, so that no change
    /// is to be expected soon.
    package var isSettled: Bool { isFullyConfirmed || (pending == 0 && unreachable > 0) }

    /// Returns the report, followed by a line for each member; `columnsMax` is `nil` for no limit.
    package func lines(columnsMax: Int?) -> [TextLine] {
        var table = Table([.flexible("MEMBER"), .left("STATUS"), .right("AFTER")])
        for member in members { table.append(member.cells) }
        return [headline, targetsLine.truncated(to: columnsMax ?? .max)] + viewLines
            + table.lines(columnsMax: columnsMax) + [summary]
    }

    /// The line that names the purge.
    private var headline: TextLine {
        TextLine("\(mode) purge ", .strong) + TextLine(id, .strong)
            + TextLine("  receipt \(receipt)", .faint)
    }

    /// The line that names the observing node if it is not the issuer.
    private var viewLines: [TextLine] {
        guard !observer.isEmpty, let issuer, observer != issuer else { return [] }
        return [TextLine("issued by \(issuer), seen from \(observer)", .faint)]
    }

    /// The line of the targets.
    private var targetsLine: TextLine {
        TextLine(targetSummary.main) + TextLine(targetSummary.more, .faint)
    }

    /// The members that have confirmed, and the time from which no node serves purged entries.
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
        if !areMembersKnown {
            line.append("; other members may exist: most have just started")
        }
        switch millisecondsUntilBounded {
        case .some(0): line.append("; no node serves the purged entries")
        case .some(let left):
            line.append(
                "; no node serves the purged entries after "
                    + "\(NumberFormat.duration(milliseconds: left))")
        case nil where majorityMilliseconds == nil: line.append("; no majority has it yet")
        case nil: break
        }
        return line
    }

    /// The longest time until a member confirmed; `nil` for none.
    private var slowest: Int64? { members.compactMap(\.elapsedMilliseconds).max() }

    /// Returns the progress as one line of at most `columnsMax` columns.
    package func progress(columnsMax: Int) -> TextLine {
        let share = members.isEmpty ? 0 : Double(confirmed) / Double(members.count)
        var note = "\(confirmed)/\(members.count) confirmed"
        if unreachable > 0 { note += ", \(unreachable) unreachable" }
        return ProgressLine.line("purging", share: share, note: note, columnsMax: columnsMax)
    }
}

extension ReceiptDocument.Member {
    /// The cells of the member's row.
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
