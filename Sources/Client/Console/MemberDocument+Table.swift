package import Admin

extension MemberDocument {
    /// The page of members, as `/admin/v1/members` gives it.
    package struct Page: Decodable {
        package var members: [MemberDocument]
    }
}

extension MemberDocument.Page {
    /// The members for people to read, one a line under heads.
    package func lines(columnsMax: Int? = nil) -> [TextLine] {
        guard !members.isEmpty else { return [TextLine("this node is in no cluster")] }
        var table = Table([
            .left(""), .left("NODE"), .left("STATE"), .left("COUNTED"), .left("CONNECTED"),
            .left("CONTACT"), .left("SHARE"), .flexible("ADDRESS"),
        ])
        for member in members { table.append(member.cells) }
        return table.lines(columnsMax: columnsMax)
    }

    /// What comes of it if the count begins anew with the node that was asked.
    var recoverySummary: [String] {
        let own = members.first(where: \.isSelf)?.node ?? "this node"
        let others = members.filter { !$0.isSelf }
        func list(_ members: [MemberDocument]) -> String {
            members.isEmpty
                ? "none"
                : members.map { "\($0.node) at \($0.address)" }
                    .joined(separator: ", ")
        }
        return [
            "The count begins anew with \(own), in the place of every other.",
            "Follow it and are counted again: \(list(others.filter(\.isConnected))).",
            "Counted until now, not reached, and must not run before they reach it: "
                + list(others.filter { $0.isVoter && !$0.isConnected }) + ".",
            "What any of them holds is asked about at its origin once.",
        ]
    }

    /// The same without colours, and without a line's end behind the last.
    package var table: String {
        lines().map { $0.rendered(isColoured: false) }.joined(separator: "\n")
    }
}

extension MemberDocument {
    /// How a member's state is shown.
    static func style(ofState state: String) -> TextStyle {
        switch state {
        case "alive": .good
        case "suspected": .warning
        case "left": .faint
        default: .bad
        }
    }

    /// What it is in each column.
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

    private var isAlive: Bool { state == "alive" }

    /// How long ago, to a second from one on.
    private var contact: String {
        guard let milliseconds = millisecondsSinceContact else { return "never" }
        if isSelf { return "-" }
        return milliseconds < 1000 ? "\(milliseconds)ms ago" : "\(milliseconds / 1000)s ago"
    }
}
