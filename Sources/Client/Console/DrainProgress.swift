import Admin

/// How far a node has come that hands over everything, as its statistics say again and again.
package struct DrainProgress: Hashable, Sendable {
    /// Images that are to be offered, or for which nobody has answered.
    package private(set) var offersLeft: UInt64 = 0
    private var offersMax: UInt64 = 0
    /// How often in succession nothing was being handed over.
    private var idleCount = 0

    package init() {}

    package mutating func update(_ report: StatisticsReport) {
        offersLeft = report.cluster?.offersPending ?? 0
        offersMax = max(offersMax, offersLeft)
        let share = report.members.first(where: \.isSelf)?.primaryShare ?? 0
        let isQuiet =
            report.readiness == "draining"
            && report.cluster.map { !$0.isHandingOff && share == 0 } ?? true
        idleCount = isQuiet ? idleCount + 1 : 0
    }

    /// Nothing more is handed over.
    ///
    /// The ring may lose the node a moment before it begins, so that once is not enough.
    package var isFinished: Bool { idleCount >= 2 }

    /// At last sight nothing was left: what ends then has handed everything over.
    package var isEmptied: Bool { idleCount > 0 && offersLeft == 0 }

    package func line(columnsMax: Int) -> TextLine {
        let share =
            offersMax == 0 ? nil : Double(offersMax - offersLeft) / Double(offersMax)
        return ProgressLine.line(
            "handing over", share: share,
            note: offersMax == 0
                ? "looking through what is held"
                : "\(NumberFormat.plural(offersLeft, "image")) left",
            columnsMax: columnsMax)
    }
}
