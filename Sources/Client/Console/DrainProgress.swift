import Admin

/// How far a node has come that hands over everything, as its statistics say again and again.
package struct DrainProgress: Hashable, Sendable {
    /// Images that are to be offered, or for which nobody has answered.
    package private(set) var offersLeft: UInt64 = 0
    private var offersMost: UInt64 = 0
    /// How often in succession nothing was being handed over.
    private var quietCount = 0

    package init() {}

    package mutating func saw(_ report: StatisticsReport) {
        offersLeft = report.cluster?.offersPending ?? 0
        offersMost = max(offersMost, offersLeft)
        let share = report.members.first(where: \.isSelf)?.ringShare ?? 0
        let isQuiet =
            report.readiness == "draining"
            && report.cluster.map { !$0.isHandingOver && share == 0 } ?? true
        quietCount = isQuiet ? quietCount + 1 : 0
    }

    /// Nothing more is handed over.
    ///
    /// The ring may lose the node a moment before it begins, so that once is not enough.
    package var isOver: Bool { quietCount >= 2 }

    /// At last sight nothing was left: what ends then has handed everything over.
    package var isDone: Bool { quietCount > 0 && offersLeft == 0 }

    package func line(columnsMax: Int) -> TextLine {
        let share =
            offersMost == 0 ? nil : Double(offersMost - offersLeft) / Double(offersMost)
        return ProgressLine.line(
            "handing over", share: share,
            note: offersMost == 0
                ? "looking through what is held" : "\(Figures.plural(offersLeft, "image")) left",
            columnsMax: columnsMax)
    }
}
