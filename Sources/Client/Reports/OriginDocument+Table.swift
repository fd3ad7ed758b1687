package import Admin

extension OriginHealth {
    /// Returns the style of a health, known or not.
    fileprivate static func style(of health: String) -> TextStyle {
        switch OriginHealth(rawValue: health) {
        case .ok: .good
        case .failing: .warning
        case .down: .bad
        case nil: .plain
        }
    }

    /// Returns the rank of a health, lower for a worse one.
    fileprivate static func rank(of health: String) -> Int {
        switch OriginHealth(rawValue: health) {
        case .down: 0
        case .failing: 1
        case .ok, nil: 2
        }
    }
}

extension OriginDocument {
    /// Returns the origins as a table, the worst first, each with its last error on the line below;
    /// none without origins.
    ///
    /// - Parameters:
    ///   - origins: the origins.
    ///   - columnsMax: the width of a line; `nil` for no limit.
    ///   - isBrief: true to show three, or all that are not healthy.
    /// - Returns: the lines.
    package static func lines(
        _ origins: [OriginDocument], columnsMax: Int?, isBrief: Bool = false
    ) -> [TextLine] {
        guard !origins.isEmpty else { return [] }
        var table = Table([
            .flexible("ORIGIN"), .left("HEALTH"), .left("CIRCUIT"), .right("QUEUE"),
            .right("CONNS"), .right("FAILED"), .right("OF"), .right("RECEIVED"),
        ])
        let sorted = origins.sorted { order($0) < order($1) }
        let shown = isBrief ? max(3, sorted.count { order($0).0 < 2 }) : sorted.count
        for origin in sorted.prefix(shown) {
            table.append(
                [
                    TextLine(origin.name),
                    TextLine(origin.health, OriginHealth.style(of: origin.health)),
                    origin.circuitText, TextLine("\(origin.waiting)"),
                    TextLine("\(origin.connections)"),
                    TextLine(
                        NumberFormat.count(origin.failed), origin.failed > 0 ? .warning : .plain),
                    TextLine(NumberFormat.count(origin.fetches)),
                    TextLine(NumberFormat.bytes(origin.receivedBytes)),
                ], detail: origin.lastError?.line(origin.failuresByReason))
        }
        return table.lines(columnsMax: columnsMax, andMore: sorted.count - shown)
    }

    /// The URL, or the host and port in documents of older nodes.
    package var name: String { url.isEmpty ? origin : url }

    /// Returns what origins are sorted by.
    private static func order(_ origin: OriginDocument) -> (Int, String) {
        (OriginHealth.rank(of: origin.health), origin.name)
    }

    /// The state of the circuit breaker, with the time until a fetch is admitted.
    private var circuitText: TextLine {
        guard circuit != "closed" else { return TextLine(circuit) }
        let time = retryAfterMilliseconds.map {
            " \(NumberFormat.duration(milliseconds: $0).prefix { $0 != " " })"
        }
        return TextLine(circuit + (time ?? ""), circuit == "open" ? .bad : .warning)
    }

    /// Returns the sums of the same origin as several nodes see it; the worst health counts.
    package func adding(_ other: OriginDocument) -> OriginDocument {
        var sum = OriginHealth.rank(of: other.health) < OriginHealth.rank(of: health) ? other : self
        sum.connections = connections &+ other.connections
        sum.idle = idle &+ other.idle
        sum.waiting = waiting &+ other.waiting
        sum.fetches = fetches &+ other.fetches
        sum.failed = failed &+ other.failed
        sum.receivedBytes = receivedBytes &+ other.receivedBytes
        sum.failuresByReason = failuresByReason.merged(other.failuresByReason, &+)
        sum.lastError = LastErrorDocument.latest(lastError, other.lastError)
        return sum
    }
}

extension SiteDocument {
    /// Returns the sites as a table, the worst first, each with its last error on the line below;
    /// none without sites.
    ///
    /// - Parameters:
    ///   - sites: the sites.
    ///   - columnsMax: the width of a line; `nil` for no limit.
    ///   - isBrief: true to show three, or all that are not healthy.
    /// - Returns: the lines.
    package static func lines(
        _ sites: [SiteDocument], columnsMax: Int?, isBrief: Bool = false
    ) -> [TextLine] {
        guard !sites.isEmpty else { return [] }
        var table = Table([
            .flexible("SITE"), .left("HEALTH"), .right("REQUESTS"), .right("HITS"),
            .right("4XX"), .right("5XX"), .right("SENT"), .right("FROM ORIGIN"),
        ])
        let sorted = sites.sorted { order($0) < order($1) }
        let shown = isBrief ? max(3, sorted.count { order($0).0 < 2 }) : sorted.count
        for site in sorted.prefix(shown) {
            let (responses, failed) = (site.responses, site.responses.serverErrors)
            table.append(
                [
                    TextLine(site.site),
                    TextLine(site.health, OriginHealth.style(of: site.health)),
                    TextLine(NumberFormat.count(site.requests.all)),
                    TextLine(NumberFormat.percent(site.requests.hitRatio)),
                    TextLine(NumberFormat.percent(responses.share(responses.clientErrors))),
                    TextLine(
                        NumberFormat.percent(responses.share(failed)), failed > 0 ? .bad : .plain),
                    TextLine(NumberFormat.bytes(site.bytes.all)),
                    TextLine(NumberFormat.bytes(site.originReceivedBytes)),
                ], detail: site.lastError?.line(NamedCounts()))
        }
        return table.lines(columnsMax: columnsMax, andMore: sorted.count - shown)
    }

    /// Returns what sites are sorted by.
    private static func order(_ site: SiteDocument) -> (Int, String) {
        (OriginHealth.rank(of: site.health), site.site)
    }

    /// Returns the sums of the same site on several nodes; the worst health counts.
    package func adding(_ other: SiteDocument) -> SiteDocument {
        var sum = OriginHealth.rank(of: other.health) < OriginHealth.rank(of: health) ? other : self
        sum.requests = requests + other.requests
        sum.bytes = bytes + other.bytes
        sum.responses = responses.merged(other.responses, &+)
        sum.originReceivedBytes = originReceivedBytes &+ other.originReceivedBytes
        sum.lastError = LastErrorDocument.latest(lastError, other.lastError)
        return sum
    }
}

extension Table {
    /// Returns the lines with the number of healthy rows that are left out, if there are any.
    fileprivate func lines(columnsMax: Int?, andMore more: Int) -> [TextLine] {
        lines(columnsMax: columnsMax)
            + (more > 0 ? [TextLine("and \(more) more that are ok", .faint)] : [])
    }
}

extension LastErrorDocument {
    /// Returns the failure in words with its age, and the reasons of earlier ones if there are
    /// several.
    fileprivate func line(_ reasons: NamedCounts) -> TextLine {
        let time = NumberFormat.ago(milliseconds: millisecondsAgo)
        let words = detail.isEmpty ? reason : detail
        let others = reasons.items.count > 1 ? "; \(reasons.text)" : ""
        return TextLine("last error \(time): \(words)\(others)", .warning)
    }

    /// Returns the later of two failures.
    fileprivate static func latest(
        _ one: LastErrorDocument?, _ other: LastErrorDocument?
    ) -> LastErrorDocument? {
        guard let one, let other else { return one ?? other }
        return one.millisecondsAgo <= other.millisecondsAgo ? one : other
    }
}

extension CertificateDocument {
    /// Returns the certificates as a table, the first to expire first; none without certificates.
    package static func lines(
        _ certificates: [CertificateDocument], columnsMax: Int?
    ) -> [TextLine] {
        guard !certificates.isEmpty else { return [] }
        var table = Table([
            .right("DAYS LEFT"), .left("EXPIRES"), .left("USE"), .flexible("NAMES"),
            .flexible("FILE"),
        ])
        for certificate in certificates.sorted(by: { $0.daysLeft < $1.daysLeft }) {
            table.append([
                TextLine("\(certificate.daysLeft)", certificate.style),
                TextLine(String(certificate.notAfter.prefix { $0 != "T" })),
                TextLine(certificate.use), TextLine(certificate.names.joined(separator: ", ")),
                TextLine(certificate.file),
            ])
        }
        return table.lines(columnsMax: columnsMax)
    }

    /// The style of the days left.
    package var style: TextStyle { daysLeft < 7 ? .bad : daysLeft < 30 ? .warning : .plain }
}
