package import Admin

/// The conditions of one node or several, the worst first, for people.
package struct ConditionReport: Sendable {
    /// A condition, and the names of the nodes that report it.
    private struct Row {
        var condition: Condition
        var nodes: [String]
    }

    private var rows: [Row] = []
    /// True if there are several nodes, so that each condition names its nodes.
    private let namesNodes: Bool

    /// Combines the conditions that nodes report under their names; one that several nodes report
    /// is one row.
    package init(_ nodes: [(name: String, conditions: [Condition])]) {
        namesNodes = nodes.count > 1
        for (name, conditions) in nodes {
            for condition in conditions { add(condition, of: name) }
        }
        // Equal severities keep the order of the nodes, which put causes first.
        rows = rows.filter(\.condition.isCritical) + rows.filter { !$0.condition.isCritical }
    }

    /// Adds a condition of a node; of a known one, the longest time is kept.
    private mutating func add(_ condition: Condition, of node: String) {
        let place = rows.firstIndex { row in
            (row.condition.name, row.condition.severity, row.condition.subject)
                == (condition.name, condition.severity, condition.subject)
        }
        guard let place else { return rows.append(Row(condition: condition, nodes: [node])) }
        rows[place].nodes.append(node)
        if rows[place].condition.sinceMilliseconds < condition.sinceMilliseconds {
            rows[place].condition = condition
        }
    }

    /// The worst state.
    package var state: NodeState {
        rows.first.map { $0.condition.isCritical ? .critical : .warning } ?? .ready
    }

    /// The worst state in words: the first condition, and the number of others.
    package var headline: TextLine {
        guard let first = rows.first else { return Self.readyLine }
        let line = first.condition.stateWord + TextLine(": \(summary(of: first))", .strong)
        return rows.count > 1 ? line + TextLine(" (and \(rows.count - 1) more)") : line
    }

    private static let readyLine =
        TextLine("ready", .good) + TextLine(": no fault is known", .strong)

    /// Returns the conditions, each with its advice, duration and alert, wrapped at `columnsMax`
    /// columns; `nil` for no limit.
    package func lines(columnsMax: Int?) -> [TextLine] {
        guard !rows.isEmpty else { return [Self.readyLine] }
        return rows.flatMap { row in
            let condition = row.condition
            let time = NumberFormat.duration(milliseconds: condition.sinceMilliseconds)
            let alert = condition.alert.map { "; alert \($0)" } ?? ""
            let note = condition.sinceMilliseconds > 0 ? "for \(time)\(alert)" : ""
            return TextLine.wrapped(
                summary(of: row), .strong, columnsMax: columnsMax,
                after: (condition.stateWord + TextLine(": ")).padded(to: Self.indent))
                + TextLine.wrapped(
                    [condition.advice, note].filter { !$0.isEmpty }.joined(separator: " — "),
                    columnsMax: columnsMax, after: TextLine(Self.blanks))
        }
    }

    private static let indent = 10
    private static let blanks = String(repeating: " ", count: indent)

    /// Returns the other conditions than the first in one line each, at most `count` lines; the
    /// last line is the number of those left out.
    package func furtherLines(_ count: Int) -> [TextLine] {
        let further = rows.dropFirst()
        let shown = further.count > count ? further.prefix(max(0, count - 1)) : further
        var lines = shown.map { row in
            (row.condition.stateWord + TextLine(": ")).padded(to: Self.indent)
                + TextLine(summary(of: row))
        }
        if count > 0, shown.count < further.count {
            lines.append(TextLine("and \(further.count - shown.count) more: v", .faint))
        }
        return lines
    }

    /// Returns the summary of a row, with the nodes that report it.
    private func summary(of row: Row) -> String {
        let text = row.condition.summary
        guard namesNodes, row.condition.name != Condition.noResponse else { return text }
        return row.nodes.count > 3
            ? "\(text) (\(row.nodes.count) nodes)"
            : "\(text) (\(row.nodes.joined(separator: ", ")))"
    }
}

extension Condition {
    /// The name of the condition of a node that does not respond, which only clients report.
    static let noResponse = "no-response"

    /// Creates the condition of a node that does not respond.
    package init(unansweredBy place: String, _ reason: String) {
        self.init()
        (name, severity) = (Self.noResponse, Severity.critical.rawValue)
        (subject, summary) = (place, "\(place) \(reason)")
        advice = "See whether it runs, and whether its admin port can be reached from here."
    }

    /// True if clients are affected, or are about to be.
    package var isCritical: Bool { severity == Severity.critical.rawValue }

    /// The severity with its colour.
    fileprivate var stateWord: TextLine { TextLine(severity, isCritical ? .bad : .warning) }
}

extension StatisticsDocument {
    /// The conditions that follow from the statistics, for nodes that report none.
    package var basicConditions: [Condition] {
        var conditions: [Condition] = []
        if let fencedMilliseconds {
            var condition = Condition(
                .fenced, .critical,
                "The node is fenced: it may lack purges, and revalidates before it serves.",
                advice: "nuthatch members shows which members it cannot reach.")
            condition.sinceMilliseconds = fencedMilliseconds
            conditions.append(condition)
        }
        if disk?.isUp == false {
            conditions.append(
                Condition(
                    .diskDown, .warning, "The disk is down: memory and origins serve.",
                    advice: "The node's log says why."))
        }
        if readiness != "ready" {
            let name: Condition.Name = readiness == "draining" ? .draining : .joining
            conditions.append(
                Condition(name, .warning, "The node is \(readiness).", advice: ""))
        }
        return conditions
    }
}

extension TextLine {
    /// Returns text in lines of at most `columnsMax` columns, broken at spaces where possible: the
    /// first after `head`, the others after as many blanks; none for an empty text.
    static func wrapped(
        _ text: String, _ look: TextStyle = .plain, columnsMax: Int?, after head: TextLine
    ) -> [TextLine] {
        guard !text.isEmpty else { return [] }
        guard let columnsMax else { return [head + TextLine(text, look)] }
        var lines: [TextLine] = []
        var line = head
        var isEmpty = true
        for word in text.split(separator: " ") {
            let piece = TextLine(String(word), look)
            if !isEmpty, line.columns + 1 + piece.columns > columnsMax {
                lines.append(line)
                line = TextLine(String(repeating: " ", count: head.columns))
                isEmpty = true
            }
            line += (isEmpty ? TextLine() : TextLine(" ", look)) + piece
            isEmpty = false
        }
        return (lines + [line]).map { $0.truncated(to: columnsMax) }
    }
}
