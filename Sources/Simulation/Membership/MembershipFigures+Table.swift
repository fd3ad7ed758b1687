import Ground

/// One line for each cluster; times in milliseconds, the middle one and the most.
extension MembershipStatistics {
    private static let columns: [(title: String, width: Int)] = [
        ("nodes", 6), ("loss %", 7), ("cold start", 11), ("killed", 13), ("power lost", 14),
        ("crash known", 14), ("join known", 12), ("leave known", 12), ("false/node-h", 13),
        ("B/s at rest", 12), ("B/s in churn", 12),
    ]

    package static var head: String {
        line(columns.map(\.title))
    }

    package var row: String {
        Self.line([
            String(nodes), Self.tenths(loss * 100), String(coldStart.milliseconds),
            Self.pair(killDetections), Self.pair(powerDetections), Self.pair(crashes),
            Self.pair(joins), Self.pair(leaves), Self.tenths(Double(falsePositives) / nodeHours),
            Self.tenths(restRate), Self.tenths(churnRate),
        ])
    }

    private static func line(_ cells: [String]) -> String {
        zip(cells, columns).map { cell, column in
            String(repeating: " ", count: max(0, column.width - cell.count)) + cell
        }.joined(separator: " ")
    }

    private static func pair(_ times: [Interval]) -> String {
        "\(times.median.milliseconds)/\((times.max() ?? .zero).milliseconds)"
    }

    /// One digit after the point.
    private static func tenths(_ value: Double) -> String {
        let scaled = Int(value * 10 + 0.5)
        return "\(scaled / 10).\(scaled % 10)"
    }
}
