import Admin
import HTTPRules
import Telemetry

extension Commands {
    /// Shows what the node holds under a URL, with the stored heads if they are wanted; refused if
    /// it holds nothing.
    package func inspect(_ url: String, withHeads: Bool) -> CommandOutcome {
        guard AbsoluteURL(Array(url.utf8)) != nil else {
            return run { () throws(CommandError) in
                throw CommandError(
                    .usageError, "\(url.quoted()) is no URL; allowed: http://… or https://…")
            }
        }
        return show(
            NodeClient.request(.getEntry, query: [("url", url)]), as: EntryReport.self
        ) { report in
            var lines = report.lines(columnsMax: console.columns)
            guard withHeads else { return lines }
            for (index, variant) in report.variants.enumerated() {
                let which = report.variants.count > 1 ? " of variant \(index + 1)" : ""
                lines += [TextLine(), TextLine("stored head\(which)", .strong)]
                lines += variant.fieldLines
            }
            return lines
        }
    }
}
