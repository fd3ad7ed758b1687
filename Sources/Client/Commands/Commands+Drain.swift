import Admin
import Glibc
import Ground

/// How a node is drained.
package struct DrainArguments: Sendable {
    /// It ends once everything is handed over.
    package var stopsNode = false
    package var waitsUntilDone = true
    /// For how long that is waited for, as the operator writes it; nil for as long as it takes.
    package var timeout: String?

    package init() {}
}

extension Commands {
    /// Has the node hand over what it owns, and shows how far it is.
    package func drain(_ order: DrainArguments) -> CommandOutcome {
        run { () throws(CommandError) in
            let limit: Interval?
            if let text = order.timeout {
                limit = try CommandOptions.duration(text, "--within")
            } else {
                limit = nil
            }
            let client = try options.client()
            let question = NodeClient.request(
                .drain, query: order.stopsNode ? [("stop", "true")] : [])
            let response = try client.send(question)
            guard order.waitsUntilDone else {
                printResult("draining", response)
                return .succeeded
            }
            defer { console.clearProgress() }
            let deadline = limit.map { BootClock.now() + $0 } ?? .distantFuture
            return try pollUntilDone(client, order, until: deadline)
        }
    }

    /// Puts a drained node back on the ring.
    package func undrain() -> CommandOutcome {
        run { () throws(CommandError) in
            let response = try options.client().send(NodeClient.request(.undrain))
            printResult("back on the ring", response)
            return .succeeded
        }
    }

    private func printResult(_ words: String, _ response: NodeResponse) {
        console.print(options.isJSON ? String(decoding: response.body, as: UTF8.self) : words)
    }

    private func pollUntilDone(
        _ client: NodeClient, _ order: DrainArguments, until deadline: Instant
    ) throws(CommandError) -> CommandOutcome {
        let question = NodeClient.request(.getStatistics)
        var progress = DrainProgress()
        while true {
            let exchange = client.start(question)
            Exchange.advance([exchange])
            // A node that has ended answers no more, and breaks off what it was answering.
            if order.stopsNode, case .failure(let failure) = exchange.outcome,
                failure.isConnectionRefusedOrReset
            {
                guard !progress.isEmptied else { return finish("stopped", .succeeded) }
                return finish("stopped before all was handed over", .incomplete)
            }
            let report = try client.document(StatisticsReport.self, of: exchange)
            progress.update(report)
            if progress.isFinished, !order.stopsNode || progress.offersLeft > 0 {
                guard progress.offersLeft > 0 else { return finish("handed over", .succeeded) }
                let left = NumberFormat.plural(progress.offersLeft, "image")
                return finish("not handed over: \(left), for which nobody answers", .incomplete)
            }
            if BootClock.now() >= deadline {
                let left = NumberFormat.plural(progress.offersLeft, "image")
                let words = progress.offersLeft > 0 ? ": \(left) left" : ""
                return finish("still handing over\(words)", .incomplete)
            }
            console.showProgress { progress.line(columnsMax: $0) }
            BootClock.pause(.milliseconds(200))
        }
    }

    private func finish(_ words: String, _ ending: CommandOutcome) -> CommandOutcome {
        console.clearProgress()
        if options.isJSON {
            let document: JSON = ["status": .text(words)]
            console.print(document.compactText)
        } else if ending == .succeeded {
            console.print(words)
        } else {
            console.printError(words)
        }
        return ending
    }
}

extension ExchangeError {
    /// Nobody listens there, or whoever did has gone; not that the way there is lost.
    fileprivate var isConnectionRefusedOrReset: Bool {
        switch self {
        case .system(let code): code == ECONNREFUSED || code == ECONNRESET || code == EPIPE
        case .incompleteResponse: true
        case .timedOut, .unresolved, .malformed, .responseTooLarge: false
        }
    }
}

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
