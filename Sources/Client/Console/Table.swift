/// A table with headings, for people.
package struct Table: Sendable {
    /// A column of a table.
    package struct Column: Sendable {
        /// The heading.
        package var title: String
        /// True if the cells are aligned to the right, as numbers are.
        package var isRight: Bool
        /// True if this column is cut when the table is too wide; of several, the last one first.
        package var isFlexible: Bool

        /// Returns a column that is aligned to the left.
        package static func left(_ title: String) -> Column {
            Column(title: title, isRight: false, isFlexible: false)
        }

        /// Returns a column that is aligned to the right.
        package static func right(_ title: String) -> Column {
            Column(title: title, isRight: true, isFlexible: false)
        }

        /// Returns a column that is aligned to the left and cut when necessary.
        package static func flexible(_ title: String) -> Column {
            Column(title: title, isRight: false, isFlexible: true)
        }
    }

    private static let gap = 2
    /// The least width to which a flexible column is cut.
    private static let flexibleColumnsMin = 8

    private let columns: [Column]
    private var rows: [[TextLine]] = []
    /// The lines below rows, by the number of the row.
    private var details: [Int: TextLine] = [:]
    private let headStyle: TextStyle

    /// Creates an empty table.
    package init(_ columns: [Column], headStyle: TextStyle = .strong) {
        self.columns = columns
        self.headStyle = headStyle
    }

    /// Adds a row, with a cell for each column, and optionally an indented line below it.
    package mutating func append(_ row: [TextLine], detail: TextLine? = nil) {
        precondition(row.count == columns.count, "\(row.count) cells of \(columns.count)")
        details[rows.count] = detail
        rows.append(row)
    }

    /// Returns the heading and the rows, each no wider than `columnsMax`; `nil` for no limit.
    package func lines(columnsMax: Int? = nil) -> [TextLine] {
        let heads = columns.map { TextLine($0.title, headStyle) }
        let all = [heads] + rows
        var widths = columns.indices.map { column in all.map { $0[column].columns }.max() ?? 0 }
        if let columnsMax { shrink(&widths, to: columnsMax) }
        return all.enumerated().flatMap { number, row in
            let line = columns.indices.reduce(into: TextLine()) { line, index in
                if index > 0 { line.append(String(repeating: " ", count: Self.gap)) }
                line += row[index].padded(to: widths[index], isRight: columns[index].isRight)
            }
            // The first line is the heading.
            let below = details[number - 1].map { TextLine("  ") + $0 }
            return [line, below].compactMap { line in
                columnsMax.flatMap { line?.truncated(to: $0) } ?? line
            }
        }
    }

    /// Reduces the widths of flexible columns as required, the last first, but not below
    /// ``flexibleColumnsMin``.
    private func shrink(_ widths: inout [Int], to columnsMax: Int) {
        for index in columns.indices.reversed() where columns[index].isFlexible {
            let excess = widths.reduce(Self.gap * (widths.count - 1), +) - columnsMax
            let least = min(widths[index], Self.flexibleColumnsMin)
            widths[index] = max(least, widths[index] - max(0, excess))
        }
    }
}

/// A list of names and values, one pair per line.
package struct KeyValueTable: Sendable {
    private var rows: [(name: String, value: TextLine)] = []

    /// Creates an empty list.
    package init() {}

    /// Adds a pair with a styled value.
    package mutating func append(_ name: String, _ value: TextLine) {
        rows.append((name, value))
    }

    /// Adds a pair with a plain value.
    package mutating func append(_ name: String, _ text: String) {
        append(name, TextLine(text))
    }

    /// Returns the lines, each no wider than `columnsMax`; `nil` for no limit.
    package func lines(columnsMax: Int? = nil) -> [TextLine] {
        let width = rows.map { TextLine($0.name).columns }.max() ?? 0
        return rows.map { name, value in
            let line = TextLine(name, .faint).padded(to: width) + TextLine("  ") + value
            return columnsMax.map { line.truncated(to: $0) } ?? line
        }
    }
}
