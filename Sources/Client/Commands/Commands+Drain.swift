package import Admin
import Glibc
import Ground

/// The arguments of a drain.
package struct DrainArguments: Sendable {
    /// True if the node stops when everything is handed off.
    package var stopsNode = false
    /// True if the command waits for the end of the handoff.
    package var waitsUntilDone = true
    /// The maximum wait, as the operator wrote it; `nil` for no limit.
    package var timeout: String?

    /// Creates the default arguments.
    package init() {}
}

extension Commands {
    /// Orders the node to drain and, unless the order says otherwise, shows the progress until the
    /// handoff is complete or the node has stopped.
    ///
    /// The outcome is `incomplete` if entries were left, or the time limit was reached.
    package func drain(_ order: DrainArguments) -> CommandOutcome {
        run { () throws(CommandError) in
            let limit = try order.timeout.map { text throws(CommandError) in
                try CommandOptions.duration(text, "--within")
            }
            let client = try options.client()
            let question = NodeClient.request(
                .drain, query: order.stopsNode ? [("stop", "true")] : [])
            let response = try client.send(question)
            guard order.waitsUntilDone else {
                printResult([TextLine("draining")], response)
                return .succeeded
            }
            defer { console.clearProgress() }
            let deadline = limit.map { BootClock.now() + $0 } ?? .distantFuture
            return try pollUntilDone(client, order, until: deadline)
        }
    }

    /// Orders a drained node to take ownership again.
    package func undrain() -> CommandOutcome {
        order(NodeClient.request(.undrain), "back on the ring")
    }

    /// Polls the node's statistics until the handoff has ended, the node has stopped as ordered, or
    /// `deadline`; prints the result.
    private func pollUntilDone(
        _ client: NodeClient, _ order: DrainArguments, until deadline: Instant
    ) throws(CommandError) -> CommandOutcome {
        let question = NodeClient.request(.getStatistics)
        var progress = DrainProgress()
        while true {
            let exchange = client.exchange(question)
            // A node that has stopped does not respond, and aborts responses in progress.
            if order.stopsNode, case .failure(let failure) = exchange.outcome,
                failure.isConnectionRefusedOrReset
            {
                guard !progress.isEmptied else { return finish("stopped", .succeeded) }
                return finish("stopped before the handoff was complete", .incomplete)
            }
            let report = try client.document(StatisticsDocument.self, of: exchange)
            progress.update(report)
            if progress.isFinished, !order.stopsNode || progress.offersLeft > 0 {
                guard progress.offersLeft > 0 else { return finish("handoff complete", .succeeded) }
                let left = NumberFormat.plural(progress.offersLeft, "image")
                return finish("not handed off: \(left), for which no node responds", .incomplete)
            }
            if BootClock.now() >= deadline {
                let left = NumberFormat.plural(progress.offersLeft, "image")
                let words = progress.offersLeft > 0 ? ": \(left) left" : ""
                return finish("handoff in progress\(words)", .incomplete)
            }
            console.showProgress { progress.line(columnsMax: $0) }
            BootClock.pause(.milliseconds(200))
        }
    }

    /// Prints a message and returns the outcome.
    private func finish(_ words: String, _ ending: CommandOutcome) -> CommandOutcome {
        console.clearProgress()
        if options.isJSON {
            console.print(OperationStatusDocument(words).json.compactText)
        } else if ending == .succeeded {
            console.print(words)
        } else {
            console.printError(words)
        }
        return ending
    }
}

extension ExchangeError {
    /// True if nothing accepts connections there, or the connection ended before the response;
    /// false for failures of the network.
    fileprivate var isConnectionRefusedOrReset: Bool {
        switch self {
        case .system(let code): code == ECONNREFUSED || code == ECONNRESET || code == EPIPE
        case .incompleteResponse: true
        case .timedOut, .unresolved, .malformed, .responseTooLarge, .tls: false
        }
    }
}

/// The progress of a handoff, from successive statistics of the node.
package struct DrainProgress: Hashable, Sendable {
    /// The number of queued and unanswered offers in the last statistics.
    package private(set) var offersLeft: UInt64 = 0
    /// The largest number of offers in any statistics, the whole of which progress is a share.
    private var offersMax: UInt64 = 0
    /// The number of successive statistics without a handoff in progress.
    private var idleCount = 0

    /// Creates the progress of a handoff that has not been observed.
    package init() {}

    /// Replaces the counts by those of the latest statistics.
    package mutating func update(_ report: StatisticsDocument) {
        offersLeft = report.cluster?.offersPending ?? 0
        offersMax = max(offersMax, offersLeft)
        let share = report.members.first(where: \.isSelf)?.primaryShare ?? 0
        let isQuiet =
            report.readiness == "draining"
            && report.cluster.map { !$0.isHandingOff && share == 0 } ?? true
        idleCount = isQuiet ? idleCount + 1 : 0
    }

    /// True if the handoff has ended, whether or not anything is left.
    ///
    /// The ring may lose the node a moment before the handoff begins, so two statistics without one
    /// are required.
    package var isFinished: Bool { idleCount >= 2 }

    /// True if the last statistics show nothing left: a node that ends then has handed off
    /// everything.
    package var isEmptied: Bool { idleCount > 0 && offersLeft == 0 }

    /// Returns the progress as one line of at most `columnsMax` columns.
    package func line(columnsMax: Int) -> TextLine {
        let share =
            offersMax == 0 ? nil : Double(offersMax - offersLeft) / Double(offersMax)
        return ProgressLine.line(
            "handing off", share: share,
            note: offersMax == 0
                ? "scanning stored images"
                : "\(NumberFormat.plural(offersLeft, "image")) left",
            columnsMax: columnsMax)
    }
}
