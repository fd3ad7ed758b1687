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
