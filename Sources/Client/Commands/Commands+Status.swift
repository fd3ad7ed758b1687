import Admin

extension Commands {
    /// Shows the status of all nodes: one in detail, several as a table.
    ///
    /// The nodes are queried at the same time. The command succeeds only if all have responded.
    package func status() -> CommandOutcome {
        run { () throws(CommandError) in
            let clients = try options.clients()
            let looks = clients.map(StatusQuery.init)
            Exchange.advance(looks.flatMap(\.exchanges))
            var rows: [(place: String, row: StatusTable.Row)] = []
            var ending = CommandOutcome.succeeded
            for look in looks {
                do throws(CommandError) {
                    let (status, statistics) = try look.documents()
                    rows.append(("\(look.client.endpoint)", .received(status, statistics)))
                } catch {
                    if looks.count == 1 { throw error }
                    rows.append(("\(look.client.endpoint)", .failed(error.shortText)))
                    if ending != .unavailable { ending = error.outcome }
                }
            }
            show(looks, rows)
            return ending
        }
    }

    /// Prints the status of the nodes.
    private func show(
        _ looks: [StatusQuery], _ rows: [(place: String, row: StatusTable.Row)]
    ) {
        if options.isJSON {
            for (look, row) in zip(looks, rows) { console.print(look.jsonLine(row.row)) }
        } else if rows.count == 1, case .received(let status, let statistics) = rows[0].row {
            console.print(status.lines(statistics, at: rows[0].place))
        } else {
            console.print(StatusTable.lines(rows, columnsMax: console.columns))
        }
    }
}

/// The queries for the status and the statistics of one node.
private struct StatusQuery {
    let client: NodeClient
    let exchanges: [Exchange]

    /// Sends the queries to a node.
    init(_ client: NodeClient) {
        self.client = client
        exchanges = [.getStatus, .getStatistics].map {
            client.start(NodeClient.request($0))
        }
    }

    /// Returns the node's status and statistics.
    func documents() throws(CommandError) -> (StatusDocument, StatisticsDocument) {
        (
            try client.document(StatusDocument.self, of: exchanges[0]),
            try client.document(StatisticsDocument.self, of: exchanges[1])
        )
    }

    /// Returns both documents as sent, with the address, or the error; on one line.
    func jsonLine(_ row: StatusTable.Row) -> String {
        if case .failed(let why) = row {
            let document: JSON = ["at": .text("\(client.endpoint)"), "fault": .text(why)]
            return document.compactText
        }
        let parts = zip(["status", "statistics"], exchanges).map { name, exchange in
            guard case .success(let response) = exchange.outcome else { return "" }
            return ",\"\(name)\":\(response.jsonLine)"
        }
        return "{\"at\":\(JSON.text("\(client.endpoint)").compactText)\(parts.joined())}"
    }
}

extension NodeResponse {
    /// The JSON document on one line: line breaks occur only between values.
    var jsonLine: String {
        String(decoding: body.filter { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
    }
}

extension CommandError {
    /// The text without the URL, for places where that is known.
    var shortText: String {
        let rest = text.split(separator: " ", maxSplits: 1)
        guard rest.count == 2, rest[0].hasPrefix("http://") else { return text }
        return String(rest[1])
    }
}
