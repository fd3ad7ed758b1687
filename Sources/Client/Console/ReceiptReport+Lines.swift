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
