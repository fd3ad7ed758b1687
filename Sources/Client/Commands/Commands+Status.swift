import Admin

extension Commands {
    /// Shows the status of all nodes: one in detail, several as a table.
    ///
    /// The nodes are queried at the same time. The command succeeds only if all have responded. A
    /// check prints only the worst state in words, which is the outcome then.
    package func status(isCheck: Bool = false) -> CommandOutcome {
        run { () throws(CommandError) in
            let looks: [StatusQuery]
            do throws(CommandError) {
                looks = try options.clients().map(StatusQuery.init)
            } catch {
                throw isCheck ? CommandError(.stateUnknown, error.text) : error
            }
            Exchange.advance(looks.flatMap(\.exchanges))
            var rows: [(place: String, row: StatusTable.Row)] = []
            var ending = CommandOutcome.succeeded
            for look in looks {
                do throws(CommandError) {
                    rows.append(("\(look.client.endpoint)", .received(try look.report())))
                } catch {
                    // A node that refuses the token says nothing about its state.
                    if isCheck, error.outcome == .refused {
                        throw CommandError(.stateUnknown, error.text)
                    }
                    if looks.count == 1, !isCheck { throw error }
                    rows.append(("\(look.client.endpoint)", .failed(error.shortText)))
                    if ending != .unavailable { ending = error.outcome }
                }
            }
            if isCheck { return check(looks, rows) }
            show(looks, rows)
            return ending
        }
    }

    /// Prints the worst state in words, and returns it.
    private func check(
        _ looks: [StatusQuery], _ rows: [(place: String, row: StatusTable.Row)]
    ) -> CommandOutcome {
        let conditions = StatusTable.conditions(rows)
        if options.isJSON { show(looks, rows) } else { console.print([conditions.headline]) }
        switch conditions.state {
        case .ready: return .succeeded
        case .warning: return .stateWarning
        case .critical: return .stateCritical
        }
    }

    /// Prints the status of the nodes.
    private func show(
        _ looks: [StatusQuery], _ rows: [(place: String, row: StatusTable.Row)]
    ) {
        if options.isJSON {
            for (look, row) in zip(looks, rows) { console.print(look.jsonLine(row.row)) }
        } else if rows.count == 1, case .received(let report) = rows[0].row {
            console.print(report.lines(at: rows[0].place, columnsMax: console.columns))
        } else {
            console.print(StatusTable.lines(rows, columnsMax: console.columns))
        }
    }
}

/// The queries for the documents of one node.
private struct StatusQuery {
    /// The documents by their names in JSON; nodes of older versions have only the first two.
    private static let documents: [(name: String, operation: AdminOperation.ID)] = [
        ("status", .getStatus), ("statistics", .getStatistics), ("conditions", .getConditions),
        ("origins", .listOrigins), ("sites", .listSites), ("certificates", .listCertificates),
    ]

    let client: NodeClient
    let exchanges: [Exchange]

    /// Sends the queries to a node.
    init(_ client: NodeClient) {
        self.client = client
        exchanges = Self.documents.map { client.start(NodeClient.request($0.operation)) }
    }

    /// Returns the node's documents.
    ///
    /// - Throws: the error of the status, the statistics or the conditions; others are left out.
    func report() throws(CommandError) -> NodeReport {
        var report = NodeReport(
            try client.document(StatusDocument.self, of: exchanges[0]),
            try client.document(StatisticsDocument.self, of: exchanges[1]),
            conditions: try conditions())
        report.origins = optional(DocumentList<OriginDocument>.self, 3)?.items ?? []
        report.sites = optional(DocumentList<SiteDocument>.self, 4)?.items ?? []
        report.certificates = optional(DocumentList<CertificateDocument>.self, 5)?.items ?? []
        return report
    }

    /// Returns the conditions; `nil` from an older node, which has none.
    ///
    /// - Throws: any error but 404: without the conditions a node may not be called ready.
    private func conditions() throws(CommandError) -> ConditionsDocument? {
        if case .success(let response) = exchanges[2].outcome, response.status == 404 { return nil }
        return try client.document(ConditionsDocument.self, of: exchanges[2])
    }

    /// Returns a document that older nodes lack; `nil` if it was not sent.
    private func optional<Document: Decodable>(
        _ type: Document.Type, _ number: Int
    ) -> Document? {
        try? client.document(type, of: exchanges[number])
    }

    /// Returns the documents as sent, with the address, or the error; on one line.
    func jsonLine(_ row: StatusTable.Row) -> String {
        if case .failed(let why) = row {
            let document: JSON = ["at": .text("\(client.endpoint)"), "fault": .text(why)]
            return document.compactText
        }
        let parts = zip(Self.documents, exchanges).map { document, exchange in
            guard case .success(let response) = exchange.outcome, response.isSuccess else {
                return ""
            }
            return ",\"\(document.name)\":\(response.jsonLine)"
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
