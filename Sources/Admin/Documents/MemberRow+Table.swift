import Telemetry

extension MemberRow {
    /// The page of members, as `/admin/v1/members` gives it.
    package struct Page: Decodable {
        package var members: [MemberRow]
    }
}

extension MemberRow.Page {
    /// The members for people to read, one a line, without a line's end behind the last.
    package var table: String {
        guard !members.isEmpty else { return "this node is in no cluster" }
        let rows = [Self.heads] + members.map(\.cells)
        let widths = Self.heads.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = zip(row, widths).map { cell, width in
                cell + String(repeating: " ", count: width - cell.count)
            }
            let line = cells.joined(separator: "  ")
            return String(line.prefix(line.count - line.reversed().prefix { $0 == " " }.count))
        }.joined(separator: "\n")
    }

    private static let heads = [
        "", "NODE", "STATE", "COUNTED", "CONNECTED", "CONTACT", "SHARE", "ADDRESS",
    ]
}

extension MemberRow {
    /// What it is in each column.
    fileprivate var cells: [String] {
        let conditions = [isDraining ? "draining" : nil, isAlive && !isCaughtUp ? "joining" : nil]
        let states = [state] + conditions.compactMap(\.self)
        return [
            isSelf ? "*" : "", node.onOneLine, states.joined(separator: ",").onOneLine,
            isCounted ? "yes" : "no", isConnected ? "yes" : "no", contact,
            "\(Int(ringShare * 1000) / 10).\(Int(ringShare * 1000) % 10)%", address.onOneLine,
        ]
    }

    private var isAlive: Bool { state == "alive" }

    /// How long ago, to a second from one on.
    private var contact: String {
        guard let milliseconds = contactMilliseconds else { return "never" }
        if isSelf { return "-" }
        return milliseconds < 1000 ? "\(milliseconds)ms ago" : "\(milliseconds / 1000)s ago"
    }
}
