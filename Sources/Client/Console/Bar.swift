/// Bars drawn with Unicode block elements.
package enum Bar {
    private static let eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
    private static let heights = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

    /// Returns a bar for `share`, from 0 to 1, of `columns`: never empty for a share above 0, and
    /// full only for 1.
    package static func text(_ share: Double, columns: Int) -> String {
        let bounded = share.isFinite ? min(1, max(0, share)) : 0
        var units = Int(bounded * Double(columns * 8))
        if bounded > 0 { units = max(1, units) }
        if bounded < 1 { units = min(units, columns * 8 - 1) }
        let text = String(repeating: "█", count: units / 8) + eighths[units % 8]
        return text + String(repeating: " ", count: columns - (units + 7) / 8)
    }

    /// Returns the last `columns` of `values` as a line of bars, between 0 and `most`; blank where
    /// there is no value, and before the first.
    package static func sparkline(_ values: [Double?], most: Double, columns: Int) -> String {
        let shown = values.suffix(columns)
        let bars = shown.map { value -> String in
            guard let value, value.isFinite else { return " " }
            guard most > 0 else { return heights[0] }
            let share = min(1, max(0, value / most))
            return heights[min(heights.count - 1, Int(share * Double(heights.count)))]
        }
        return String(repeating: " ", count: columns - shown.count) + bars.joined()
    }
}

/// The progress of a long operation.
package enum ProgressLine {
    /// Returns `what ███▌     35%  note`, cut to `columnsMax`; `share` is `nil` if the total is
    /// unknown.
    package static func line(
        _ what: String, share: Double?, note: String, columnsMax: Int
    ) -> TextLine {
        let barColumns = max(8, min(30, columnsMax / 3))
        var line = TextLine(what, .strong) + TextLine("  ")
        if let share {
            line += TextLine(Bar.text(share, columns: barColumns), .accent)
            line += TextLine("  \(NumberFormat.wholePercent(share))").padded(to: 6, isRight: true)
            line.append("  ")
        }
        line.append(note)
        return line.truncated(to: columnsMax)
    }
}
