import Admin
import Glibc
import Ground

/// How a node is drained.
package struct DrainOrder: Sendable {
    /// It ends once everything is handed over.
    package var stops = false
    package var waits = true
    /// For how long that is waited for, as the operator writes it; nil for as long as it takes.
    package var limit: String?

    package init() {}
}

extension Commands {
    /// Has the node hand over what it owns, and shows how far it is.
    package func drain(_ order: DrainOrder) -> CommandEnding {
        attempt { () throws(CommandFault) in
            let limit: Interval?
            if let text = order.limit {
                limit = try CommandOptions.duration(text, "--within")
            } else {
                limit = nil
            }
            let client = try options.client()
            let question = NodeClient.question(
                .drain, query: order.stops ? [("stop", "true")] : [])
            let answer = try client.ask(question)
            guard order.waits else {
                say("draining", answer)
                return .done
            }
            defer { console.endProgress() }
            let deadline = limit.map { SystemClock.now() + $0 } ?? .distantFuture
            return try follow(client, order, until: deadline)
        }
    }

    /// Puts a drained node back on the ring.
    package func undrain() -> CommandEnding {
        attempt { () throws(CommandFault) in
            let answer = try options.client().ask(NodeClient.question(.undrain))
            say("back on the ring", answer)
            return .done
        }
    }

    private func say(_ words: String, _ answer: Answer) {
        console.print(options.isJSON ? String(decoding: answer.body, as: UTF8.self) : words)
    }

    private func follow(
        _ client: NodeClient, _ order: DrainOrder, until deadline: Instant
    ) throws(CommandFault) -> CommandEnding {
        let question = NodeClient.question(.getStatistics)
        var progress = DrainProgress()
        while true {
            let exchange = client.begin(question)
            Exchange.advance([exchange])
            // A node that has ended answers no more, and breaks off what it was answering.
            if order.stops, case .failure(let failure) = exchange.outcome, failure.isOfNobody {
                guard !progress.isDone else { return finish("stopped", .done) }
                return finish("stopped before all was handed over", .unfinished)
            }
            let report = try client.document(StatisticsReport.self, of: exchange)
            progress.saw(report)
            if progress.isOver, !order.stops || progress.offersLeft > 0 {
                guard progress.offersLeft > 0 else { return finish("handed over", .done) }
                let left = Figures.plural(progress.offersLeft, "image")
                return finish("not handed over: \(left), for which nobody answers", .unfinished)
            }
            if SystemClock.now() >= deadline {
                let left = Figures.plural(progress.offersLeft, "image")
                let words = progress.offersLeft > 0 ? ": \(left) left" : ""
                return finish("still handing over\(words)", .unfinished)
            }
            console.show { progress.line(columnsMax: $0) }
            SystemClock.pause(.milliseconds(200))
        }
    }

    private func finish(_ words: String, _ ending: CommandEnding) -> CommandEnding {
        console.endProgress()
        if options.isJSON {
            let document: JSON = ["status": .text(words)]
            console.print(document.line)
        } else if ending == .done {
            console.print(words)
        } else {
            console.complain(words)
        }
        return ending
    }
}

extension AskingFailure {
    /// Nobody listens there, or whoever did has gone; not that the way there is lost.
    fileprivate var isOfNobody: Bool {
        switch self {
        case .system(let code): code == ECONNREFUSED || code == ECONNRESET || code == EPIPE
        case .brokenOff: true
        case .timedOut, .unresolved, .malformed, .tooLarge: false
        }
    }
}
