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
    /// The outcome is `incomplete` if all members are waited for, and one has not confirmed in time
    /// or cannot be reached.
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
            var reply = try client.send(question, as: ReceiptDocument.self, extraTimeout: limit)
            if order.wait == .all {
                defer { console.clearProgress() }
                reply = try poll(
                    NodeClient.request(.getReceipt, [reply.document.receipt]), client,
                    after: reply, until: deadline, isDone: \.isSettled
                ) { $0.progress(columnsMax: $1) }
            }
            for url in order.urls + order.prefixes where url.hasSuffix("*") {
                console.printError(
                    "note: \(url.quoted()) was used literally, including the *; --prefix "
                        + "covers everything below a path that ends at a / or at a segment's end")
            }
            let receipt = reply.document
            printResult(receipt.lines(columnsMax: console.columns), reply.response)
            return order.wait != .all || receipt.isFullyConfirmed ? .succeeded : .incomplete
        }
    }
}
