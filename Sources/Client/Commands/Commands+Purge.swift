import Admin
import Ground
import Telemetry

/// What is to be purged, and how.
package struct PurgeOrder: Sendable {
    package var urls: [String] = []
    package var prefixes: [String] = []
    package var tags: [String] = []
    package var isEverything = false
    package var isSoft = false
    /// Nil for one that the node makes.
    package var id: String?
    package var wait = PurgePatience.all
    /// For how long, as the operator writes it.
    package var limit = "10s"

    package init() {}

    var json: JSON {
        var members = [JSON.Member("mode", isSoft ? "soft" : "hard")]
        if let id { members.append(JSON.Member("id", .text(id))) }
        let targets: [JSON] =
            urls.map { ["url": .text($0)] } + prefixes.map { ["prefix": .text($0)] }
            + tags.map { ["tag": .text($0)] } + (isEverything ? [["everything": true]] : [])
        return .object(members + [JSON.Member("targets", .list(targets))])
    }
}

/// What a purge is waited for.
package enum PurgePatience: String, CaseIterable, Sendable {
    /// Every member that can be reached has confirmed.
    case all
    /// It is synced to the node's disk, and sent.
    case issued
    /// Nothing.
    case none
}

extension Commands {
    /// Purges, and shows the receipt while it fills in.
    ///
    /// Done if what was waited for has come, unfinished if a member has not confirmed in time or
    /// cannot be reached.
    package func purge(_ order: PurgeOrder) -> CommandEnding {
        attempt { () throws(CommandFault) in
            let limit = try CommandOptions.duration(order.limit, "--within")
            let client = try options.client()
            let deadline = SystemClock.now() + limit
            let question = NodeClient.question(
                .issuePurge,
                query: [
                    ("wait", order.wait == .none ? "none" : "issued"),
                    ("timeout_ms", "\(min(60_000, limit.milliseconds))"),
                ], body: order.json)
            var answer = try client.ask(question, patience: limit)
            var receipt = try client.document(ReceiptReport.self, in: answer, to: question)
            if order.wait == .all {
                (answer, receipt) = try follow(receipt, answer, client, until: deadline)
            }
            for url in order.urls + order.prefixes where url.hasSuffix("*") {
                console.complain(
                    "note: \(url.quoted()) was taken as it stands, the * included; --prefix "
                        + "covers all that follows a path up to a / or its end")
            }
            if options.isJSON {
                console.print(String(decoding: answer.body, as: UTF8.self))
            } else {
                console.print(receipt.lines(columnsMax: console.columns))
            }
            return order.wait != .all || receipt.isConfirmedByAll ? .done : .unfinished
        }
    }

    /// Asks for the receipt again and again, until nobody in reach is waited for.
    private func follow(
        _ first: ReceiptReport, _ answer: Answer, _ client: NodeClient, until deadline: Instant
    ) throws(CommandFault) -> (Answer, ReceiptReport) {
        var (last, receipt) = (answer, first)
        let question = NodeClient.question(.getReceipt, [first.receipt])
        var pause = Interval.milliseconds(20)
        defer { console.endProgress() }
        while !receipt.isSettled, SystemClock.now() + pause < deadline {
            console.show { receipt.progress(columnsMax: $0) }
            SystemClock.pause(pause)
            pause = min(.milliseconds(250), pause + pause)
            last = try client.ask(question)
            receipt = try client.document(ReceiptReport.self, in: last, to: question)
        }
        return (last, receipt)
    }
}
