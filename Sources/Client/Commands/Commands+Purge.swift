import Admin
import Ground
import Telemetry

/// The arguments of a purge.
package struct PurgeArguments: Sendable {
    /// The URLs to purge.
    package var urls: [String] = []
    /// The URL prefixes to purge.
    package var prefixes: [String] = []
    /// The tags to purge.
    package var tags: [String] = []
    /// True to purge everything.
    package var isEverything = false
    /// True for a soft purge, which leaves entries to be revalidated.
    package var isSoft = false
    /// The client's id of the purge; `nil` for a new one of the node.
    package var id: String?
    /// The progress that the command waits for.
    package var wait = PurgeWaitTarget.all
    /// The maximum wait, as the operator wrote it.
    package var timeout = "10s"

    /// Creates arguments without targets.
    package init() {}

    /// The body of the request.
    var json: JSON {
        var members = [JSON.Member("mode", isSoft ? "soft" : "hard")]
        if let id { members.append(JSON.Member("id", .text(id))) }
        let targets: [JSON] =
            urls.map { ["url": .text($0)] } + prefixes.map { ["prefix": .text($0)] }
            + tags.map { ["tag": .text($0)] } + (isEverything ? [["everything": true]] : [])
        return .object(members + [JSON.Member("targets", .list(targets))])
    }
}

/// The progress of a purge that a command waits for.
package enum PurgeWaitTarget: String, CaseIterable, Sendable {
    /// All reachable members have confirmed the purge.
    case all
    /// The purge is synced to the node's disk, and sent.
    case issued
    /// The command does not wait.
    case none
}

extension Commands {
    /// Purges, and shows the receipt while members confirm.
    ///
    /// The outcome is `succeeded` if the awaited progress was reached, and `incomplete` if a member
    /// has not confirmed in time or cannot be reached.
    package func purge(_ order: PurgeArguments) -> CommandOutcome {
        run { () throws(CommandError) in
            let limit = try CommandOptions.duration(order.timeout, "--within")
            let client = try options.client()
            let deadline = BootClock.now() + limit
            let question = NodeClient.request(
                .issuePurge,
                query: [
                    ("wait", order.wait == .none ? "none" : "issued"),
                    ("timeout_ms", "\(min(60_000, limit.milliseconds))"),
                ], body: order.json)
            var response = try client.send(question, extraTimeout: limit)
            var receipt = try client.document(ReceiptDocument.self, in: response, to: question)
            if order.wait == .all {
                (response, receipt) = try pollUntilDone(receipt, response, client, until: deadline)
            }
            for url in order.urls + order.prefixes where url.hasSuffix("*") {
                console.printError(
                    "note: \(url.quoted()) was used literally, including the *; --prefix "
                        + "covers everything below a path that ends at a / or at a segment's end")
            }
            if options.isJSON {
                console.print(String(decoding: response.body, as: UTF8.self))
            } else {
                console.print(receipt.lines(columnsMax: console.columns))
            }
            return order.wait != .all || receipt.isFullyConfirmed ? .succeeded : .incomplete
        }
    }

    /// Polls the receipt until all reachable members have confirmed.
    private func pollUntilDone(
        _ first: ReceiptDocument, _ response: NodeResponse, _ client: NodeClient,
        until deadline: Instant
    ) throws(CommandError) -> (NodeResponse, ReceiptDocument) {
        var (last, receipt) = (response, first)
        let question = NodeClient.request(.getReceipt, [first.receipt])
        var pause = Interval.milliseconds(20)
        defer { console.clearProgress() }
        while !receipt.isSettled, BootClock.now() + pause < deadline {
            console.showProgress { receipt.progress(columnsMax: $0) }
            BootClock.pause(pause)
            pause = min(.milliseconds(250), pause + pause)
            last = try client.send(question)
            receipt = try client.document(ReceiptDocument.self, in: last, to: question)
        }
        return (last, receipt)
    }
}
