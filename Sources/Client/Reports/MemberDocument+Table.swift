package import Admin

extension DocumentList<MemberDocument> {
    /// Returns the members as a table with a heading.
    package func lines(columnsMax: Int? = nil) -> [TextLine] {
        guard !items.isEmpty else { return [TextLine("this node is not in a cluster")] }
        var table = Table([
            .left(""), .left("NODE"), .left("STATE"), .left("VOTER"), .left("CONNECTED"),
            .left("CONTACT"), .left("SHARE"), .flexible("ADDRESS"),
        ])
        for member in items { table.append(member.cells) }
        return table.lines(columnsMax: columnsMax)
    }

    /// The consequences of a new voter set with this node only, for the operator.
    var recoverySummary: [String] {
        let own = items.first(where: \.isSelf)?.node ?? "this node"
        let others = items.filter { !$0.isSelf }
        func list(_ members: [MemberDocument]) -> String {
            members.isEmpty
                ? "none"
                : members.map { "\($0.node) at \($0.address)" }
                    .joined(separator: ", ")
        }
        return [
            "A new voter set begins with \(own) as its only member.",
            "These members follow it and become voters: \(list(others.filter(\.isConnected))).",
            "These voters are not connected and must not run until they reach it: "
                + list(others.filter { $0.isVoter && !$0.isConnected }) + ".",
            "Each stored entry is revalidated once with its origin.",
        ]
    }

    /// The table without colours and without a final line break.
    package var table: String {
        lines().map { $0.rendered(isColoured: false) }.joined(separator: "\n")
    }
}

extension MemberDocument {
    /// Returns the members by name with their own reports, each with what is wrong with it on the
    /// line below; none for a node alone.
    package static func reportLines(_ members: [MemberDocument], columnsMax: Int?) -> [TextLine] {
        let present = members.filter { $0.state != "left" }
        guard present.count > 1 else { return [] }
        var table = Table([
            .left(""), .flexible("MEMBER"), .left("STATE"), .right("REQUESTS"), .right("HITS"),
            .right("5XX"), .right("FAILED"), .right("OF"), .flexible("ADMIN"),
        ])
        for member in present { table.append(member.reportCells, detail: member.faultLine) }
        return table.lines(columnsMax: columnsMax)
    }

    /// The name, or the first digits of the id.
    package var shortName: String { name.isEmpty ? String(node.prefix(8)) : name }

    /// The worse of the state that others see and of the state that the member reports.
    package var reportedState: TextLine {
        guard isAlive, let summary, summary.state != NodeState.ready.rawValue else {
            return TextLine(isAlive && summary != nil ? "ready" : state, Self.style(ofState: state))
        }
        let isCritical = summary.state == NodeState.critical.rawValue
        return TextLine(summary.state, isCritical ? .bad : .warning)
    }

    /// The cells of the member's row among reports.
    private var reportCells: [TextLine] {
        func cell(_ text: (Summary) -> String) -> TextLine { TextLine(summary.map(text) ?? "–") }
        let failed = summary.map { $0.originFailed > 0 } ?? false
        return [
            TextLine(isSelf ? "*" : "", .strong), TextLine(shortName), reportedState,
            cell { NumberFormat.count($0.requests) },
            cell { NumberFormat.percent($0.hitRatio) },
            cell { NumberFormat.count($0.serverErrors) },
            cell { NumberFormat.count($0.originFailed) }.styled(failed ? .warning : .plain),
            cell { NumberFormat.count($0.originFetches) }, TextLine(adminURL ?? address),
        ]
    }

    /// What is wrong with the member in words; `nil` if nothing is known.
    private var faultLine: TextLine? {
        let settings =
            differingSettings.isEmpty
            ? "" : "settings differ: \(differingSettings.joined(separator: ", "))"
        let words = [summary?.condition ?? "", settings].filter { !$0.isEmpty }
        return words.isEmpty ? nil : TextLine(words.joined(separator: "; "), .warning)
    }

    /// Returns the style of a member's state.
    static func style(ofState state: String) -> TextStyle {
        switch state {
        case "alive": .good
        case "suspected": .warning
        case "left": .faint
        default: .bad
        }
    }

    /// The cells of the member's row.
    fileprivate var cells: [TextLine] {
        let conditions = [isDraining ? "draining" : nil, isAlive && !isCaughtUp ? "joining" : nil]
        let states = [state] + conditions.compactMap(\.self)
        return [
            TextLine(isSelf ? "*" : "", .strong), TextLine(node),
            TextLine(states.joined(separator: ","), Self.style(ofState: state)),
            TextLine(isVoter ? "yes" : "no"),
            TextLine(isConnected ? "yes" : "no"), TextLine(contact),
            TextLine(NumberFormat.share(primaryShare)),
            TextLine(address),
        ]
    }

    /// True if the member is alive.
    private var isAlive: Bool { state == "alive" }

    /// The time since the last contact, in seconds from one on.
    private var contact: String {
        guard let milliseconds = millisecondsSinceContact else { return "never" }
        if isSelf { return "-" }
        return milliseconds < 1000 ? "\(milliseconds)ms ago" : "\(milliseconds / 1000)s ago"
    }
}

extension MemberDocument.Summary {
    /// The share of hits among cacheable responses, from 0 to 1; `nil` without any.
    var hitRatio: Double? { cacheable == 0 ? nil : Double(hits) / Double(cacheable) }
}

extension [MemberDocument] {
    /// The sums of the reports of all members in one line; `nil` if at most one reports.
    package var totalLine: TextLine? {
        let reports = compactMap(\.summary)
        guard reports.count > 1 else { return nil }
        func sum(_ part: (MemberDocument.Summary) -> UInt64) -> UInt64 {
            reports.reduce(0) { $0 &+ part($1) }
        }
        let cacheable = sum(\.cacheable)
        let ratio = cacheable == 0 ? nil : Double(sum(\.hits)) / Double(cacheable)
        var line = TextLine(
            "\(NumberFormat.count(sum(\.requests))) requests of \(reports.count) members; "
                + "hit ratio " + NumberFormat.percent(ratio))
        for (count, words) in [
            (sum(\.serverErrors), "answered 5xx"), (sum(\.originFailed), "fetches failed"),
        ] where count > 0 {
            line.append("; ")
            line.append("\(NumberFormat.count(count)) \(words)", .warning)
        }
        return line
    }
}
