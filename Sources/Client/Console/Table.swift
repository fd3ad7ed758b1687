/// Rows under heads, for people to read.
package struct Table: Sendable {
    package struct Column: Sendable {
        package var title: String
        /// Figures stand at the right.
        package var isRight: Bool
        /// It is this one that is cut where there is no room for all.
        package var isFlexible: Bool

        package static func left(_ title: String) -> Column {
            Column(title: title, isRight: false, isFlexible: false)
        }

        package static func right(_ title: String) -> Column {
            Column(title: title, isRight: true, isFlexible: false)
        }

        package static func flexible(_ title: String) -> Column {
            Column(title: title, isRight: false, isFlexible: true)
        }
    }

    private static let gap = 2
    /// A flexible column is not cut below this.
    private static let flexibleColumnsMin = 8

    private let columns: [Column]
    private var rows: [[TextLine]] = []
    private let headStyle: TextStyle

    package init(_ columns: [Column], headStyle: TextStyle = .strong) {
        self.columns = columns
        self.headStyle = headStyle
    }

    /// A row has a cell for each column.
    package mutating func append(_ row: [TextLine]) {
        precondition(row.count == columns.count, "\(row.count) cells of \(columns.count)")
        rows.append(row)
    }

    /// The head and the rows, each no wider than `columnsMax`; nil for as wide as they are.
    package func lines(columnsMax: Int? = nil) -> [TextLine] {
        let heads = columns.map { TextLine($0.title, headStyle) }
        let all = [heads] + rows
        var widths = columns.indices.map { column in all.map { $0[column].columns }.max() ?? 0 }
        if let columnsMax { shrink(&widths, to: columnsMax) }
        return all.map { row in
            let line = columns.indices.reduce(into: TextLine()) { line, index in
                if index > 0 { line.append(String(repeating: " ", count: Self.gap)) }
                line += row[index].padded(to: widths[index], isRight: columns[index].isRight)
            }
            return columnsMax.map { line.truncated(to: $0) } ?? line
        }
    }

    private func shrink(_ widths: inout [Int], to columnsMax: Int) {
        let excess = widths.reduce(Self.gap * (widths.count - 1), +) - columnsMax
        guard excess > 0, let flexible = columns.firstIndex(where: \.isFlexible) else { return }
        let least = min(widths[flexible], Self.flexibleColumnsMin)
        widths[flexible] = max(least, widths[flexible] - excess)
    }
}

/// Names and what they are, one pair a line.
package struct KeyValueTable: Sendable {
    private var rows: [(name: String, value: TextLine)] = []

    package init() {}

    package mutating func append(_ name: String, _ value: TextLine) {
        rows.append((name, value))
    }

    package mutating func append(_ name: String, _ text: String) {
        append(name, TextLine(text))
    }

    package func lines(columnsMax: Int? = nil) -> [TextLine] {
        let width = rows.map { TextLine($0.name).columns }.max() ?? 0
        return rows.map { name, value in
            let line = TextLine(name, .faint).padded(to: width) + TextLine("  ") + value
            return columnsMax.map { line.truncated(to: $0) } ?? line
        }
    }
}
