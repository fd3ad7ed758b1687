package import Ground
import Telemetry

/// The rules by which conditions follow from facts.
///
/// No rule reports a few failures: a client can cause them, and a node of which every failed
/// request is shown as a fault is one that nobody looks at.
package enum ConditionRules {
    /// A condition that is shown once it has held for some time.
    package struct Finding: Sendable {
        /// The condition.
        package var condition: Condition
        /// The time for which it must have held.
        package var delay: Interval

        /// Creates a finding; it is shown at once unless `delay` is given.
        package init(condition: Condition, delay: Interval = .zero) {
            self.condition = condition
            self.delay = delay
        }
    }

    /// Failures below which no share of them counts: a restart of an origin, or one client with a
    /// broken link, causes a few.
    static let failuresMin: UInt64 = 10
    /// Requests from which on the shortest window is judged.
    package static let requestsMin: UInt64 = 20
    /// The windows that shares are computed over; the first that is conclusive is used.
    ///
    /// The shortest shows a failure after ten seconds, and its end; the longest finds one at a site
    /// with a request every few seconds.
    static let windows: [Interval] = [.seconds(10), .seconds(60), .seconds(300)]
    /// Share of failures, in percent, from which on responses are reported; as in the alert
    /// NuthatchServerErrors.
    static let serverErrorsPercent: UInt64 = 5
    /// Share of failures, in percent, from which on fetches are reported; as in the alert
    /// NuthatchOriginsFailing.
    static let fetchFailuresPercent = 10

    /// Returns what the facts show, in no particular order.
    package static func findings(_ facts: NodeFacts) -> [Finding] {
        let origins = originFindings(facts)
        return stateFindings(facts) + origins + responseFindings(facts, besides: origins)
            + resourceFindings(facts) + certificateFindings(facts)
            + facts.cluster.conditions.map { Finding(condition: $0) }
    }

    /// Returns the health of an origin with `all` recent requests, of which `bad` were served badly
    /// or not at all.
    package static func health(isCircuitOpen: Bool, all: Int, bad: Int) -> OriginHealth {
        if isCircuitOpen { return .down }
        guard bad >= Int(failuresMin) else { return .ok }
        if bad >= all { return .down }
        return bad * 100 >= all * fetchFailuresPercent ? .failing : .ok
    }

    /// Returns the failed responses of a site, if they are a considerable share, as words.
    ///
    /// - Parameters:
    ///   - index: the index of the site in the counters of `facts`.
    ///   - facts: the facts.
    /// - Returns: a clause with figures; `nil` if few or none have failed.
    package static func failures(ofSite index: Int, _ facts: NodeFacts) -> String? {
        guard facts.now.sites.indices.contains(index),
            facts.now.sites[index].serverErrors >= failuresMin
        else { return nil }
        return share(facts) {
            let counts = $0.responses(ofSite: index)
            return (counts?.serverErrors ?? 0, counts?.requests ?? 0)
        }?.clause
    }

    /// Returns true if a window is enough to judge; false if it has too few requests, or few
    /// failures that are a considerable share.
    private static func isConclusive(all: UInt64, bad: UInt64, percent: UInt64) -> Bool {
        all >= requestsMin && (bad >= failuresMin || bad * 100 < all * percent)
    }

    /// Returns true if the fetches from an origin within a window are enough to judge it.
    package static func isConclusive(all: Int, bad: Int) -> Bool {
        isConclusive(all: UInt64(all), bad: UInt64(bad), percent: UInt64(fetchFailuresPercent))
    }

    /// A considerable share of failures within a window.
    private struct Share {
        let bad: UInt64
        let all: UInt64
        let duration: Interval

        /// The share in percent, at least 1.
        var percent: UInt64 { max(1, (bad * 100 + all / 2) / max(1, all)) }
        /// The window in words.
        var time: String { "the last \(ConditionRules.text(duration))" }
        /// The share in words.
        var clause: String { "\(percent) % of the \(all) requests of \(time)" }
    }

    /// Returns the share of failures in the shortest conclusive window; `nil` if it is not
    /// considerable.
    private static func share(
        _ facts: NodeFacts, percent: UInt64 = serverErrorsPercent,
        _ counts: (TrafficWindow) -> (bad: UInt64, all: UInt64)
    ) -> Share? {
        var last: Share?
        for length in windows {
            let window = facts.history.window(length, until: facts.now)
            let (bad, all) = counts(window)
            last = Share(bad: bad, all: all, duration: window.duration)
            if isConclusive(all: all, bad: bad, percent: percent) { break }
        }
        guard let last, last.bad >= failuresMin, last.bad * 100 >= last.all * percent else {
            return nil
        }
        return last
    }

    /// Returns a duration in words.
    fileprivate static func text(_ duration: Interval) -> String {
        let seconds = max(1, duration.seconds)
        return seconds < 120 ? "\(seconds) s" : "\(seconds / 60) min"
    }
}

// MARK: - Origins and responses

extension ConditionRules {
    /// Returns the origins that are down or fail.
    ///
    /// An origin that clients name is reported only if it makes a considerable share of all
    /// requests fail: of many such origins, some always fail.
    private static func originFindings(_ facts: NodeFacts) -> [Finding] {
        let all = share(facts) { ($0.responses.serverErrors, $0.responses.all) }
        return facts.origins.compactMap { origin -> Finding? in
            let document = origin.document
            guard document.health != OriginHealth.ok.rawValue else { return nil }
            let sites = facts.now.sites.indices.filter { index in
                origin.isOperatorConfigured
                    && facts.siteOrigins[facts.now.sites[index].site] == document.url
            }
            let ofSite = sites.lazy.compactMap { Self.failures(ofSite: $0, facts) }.first
            if !origin.isOperatorConfigured {
                guard let all, UInt64(origin.bad) * 100 >= all.all * serverErrorsPercent else {
                    return nil
                }
            }
            let isDown = document.health == OriginHealth.down.rawValue
            let of = sites.isEmpty ? "" : " of \(list(sites.map { facts.now.sites[$0].site }))"
            let clients = origin.isOperatorConfigured ? ofSite : all?.clause
            let effect =
                clients.map { "\($0) got a 5xx response" }
                ?? (document.circuit == "closed"
                    ? "\(origin.bad) of \(origin.all) requests to it failed recently"
                    : "nothing is fetched from it, stored responses are served")
            return Finding(
                condition: Condition(
                    isDown ? .originDown : .originFailing,
                    clients == nil ? .warning : .critical, subject: document.url,
                    "Origin \(document.url)\(of) \(isDown ? "is down" : "fails"): \(effect)"
                        + (document.lastError.map { " (\(words($0)))" } ?? "") + ".",
                    advice: isDown
                        ? "Check from the node's machine whether the origin responds; a request "
                            + "of a client tries it again."
                        : "Read the reason; the log names each failed request. Check the origin "
                            + "and the network to it.",
                    alert: document.circuit == "closed"
                        ? "NuthatchOriginsFailing" : "NuthatchOriginLeftAlone"))
        }
    }

    /// Returns the sites and limits that make requests fail, and the node as a whole.
    private static func responseFindings(
        _ facts: NodeFacts, besides origins: [Finding]
    ) -> [Finding] {
        let named = Set(origins.map(\.condition.subject))
        var found: [Finding] = []
        for index in facts.now.sites.indices {
            guard let failures = failures(ofSite: index, facts) else { continue }
            let site = facts.now.sites[index].site
            if let origin = facts.siteOrigins[site], named.contains(origin) { continue }
            found.append(
                Finding(
                    condition: Condition(
                        .siteFailing, .critical, subject: site,
                        "Site \(site) fails: \(failures) got a 5xx response.",
                        advice: "Find one in the access log, and search the log for its request "
                            + "id. The response may be the origin's own.")))
        }
        for (label, metric) in refusals where metric != .refusedCircuit || origins.isEmpty {
            // One percent: requests that a limit refuses are meant to be refused at a peak.
            let refused = share(facts, percent: 1) { ($0[metric], $0.responses.all) }
            guard let refused else { continue }
            found.append(
                Finding(
                    condition: Condition(
                        .refusing, .warning, subject: label,
                        "\(refused.bad) requests of \(refused.time), \(refused.percent) %, got 503 "
                            + "because a limit was reached: \(label).",
                        advice: OriginMetrics.refusals.advice, alert: "NuthatchRefusing")))
        }
        if let all = share(facts, { ($0.responses.serverErrors, $0.responses.all) }) {
            found.append(
                Finding(
                    condition: Condition(
                        .serverErrors, .critical,
                        "\(all.percent) % of the \(all.all) responses of \(all.time) were 5xx.",
                        advice: MetricTable.responses.advice, alert: "NuthatchServerErrors")))
        }
        return found + connectionFindings(facts)
    }

    /// The limits with their metrics.
    private static var refusals: [(label: String, metric: Metric)] {
        guard case .node(_, let series) = OriginMetrics.refusals.source else { return [] }
        return series.map { ($0.label, $0.metric) }
    }

    /// Returns the refusal of clients' connections.
    private static func connectionFindings(_ facts: NodeFacts) -> [Finding] {
        let refused = share(facts, percent: 1) {
            ($0[.connectionsRefused], $0[.connectionsRefused] + $0[.connectionsAccepted])
        }
        guard let refused else { return [] }
        return [
            Finding(
                condition: Condition(
                    .connectionsRefused,
                    // Below, it is likely one client that exceeds connections-per-client.
                    refused.percent >= serverErrorsPercent ? .critical : .warning,
                    "\(refused.bad) of \(refused.all) connections of \(refused.time) were refused.",
                    advice: "Raise the limit on file descriptors (ulimit -n), connections-limit or "
                        + "connections-per-client, whichever is reached.",
                    alert: "NuthatchConnectionsRefused"))
        ]
    }

    /// Returns the last failure in words.
    private static func words(_ error: LastErrorDocument) -> String {
        "\(error.reason): \(error.detail), "
            + "\(text(.milliseconds(error.millisecondsAgo))) ago"
    }

    /// Returns names as a list in words, of which the first three are given.
    private static func list(_ names: [String]) -> String {
        let shown = names.prefix(3).joined(separator: ", ")
        return names.count > 3 ? "\(shown) and \(names.count - 3) more sites" : shown
    }
}

// MARK: - The node itself

extension ConditionRules {
    /// Returns what the node's part in its cluster shows.
    private static func stateFindings(_ facts: NodeFacts) -> [Finding] {
        var found: [Finding] = []
        if let fenced = facts.fenced, facts.readiness == .ready {
            found.append(
                Finding(
                    condition: Condition(
                        // A node that has just started is fenced until a majority has replied.
                        .fenced, fenced < .seconds(10) ? .warning : .critical,
                        "The node has been fenced for \(text(fenced)): it cannot prove that it "
                            + "knows every purge, and revalidates what it serves.",
                        advice: "Start the voters that it does not reach, or repair the network. "
                            + "Remove members that will not return (nuthatch members forget).",
                        alert: "NuthatchFenced")))
        }
        if facts.readiness == .joining || facts.missingSeeds != nil {
            let seeds = facts.missingSeeds ?? []
            found.append(
                Finding(
                    condition: Condition(
                        .joining, facts.now.uptime < .seconds(30) ? .warning : .critical,
                        "The node looks for its cluster"
                            + (seeds.isEmpty ? "." : "; no reply from \(list(seeds))."),
                        advice: "Check the addresses in join. If no other node has a cluster, "
                            + "nuthatch members bootstrap forms one.",
                        alert: "NuthatchJoining")))
        }
        if facts.readiness == .draining {
            found.append(
                Finding(
                    condition: Condition(
                        .draining, .warning, "The node is draining, as ordered.",
                        advice: "It may be stopped once its entries are handed off; "
                            + "nuthatch undrain puts it back on the ring.")))
        }
        let recent = facts.history.window(.seconds(300), until: facts.now)
        let pending = facts.now.metrics[.receiptsPending]
        let issued = recent[.purgesHard] + recent[.purgesSoft]
        // A confirmation takes less than a second, so more than five seconds' worth is a lag.
        if pending > 0, pending * UInt64(max(1, recent.duration.seconds)) > 5 * issued {
            found.append(
                Finding(
                    condition: Condition(
                        .purgesUnconfirmed, .warning,
                        "\(pending) purges of this node are not confirmed by all voters.",
                        advice: "nuthatch members names the members that lag. Remove those that "
                            + "will not return with nuthatch members forget.",
                        alert: "NuthatchPurgesUnconfirmed"),
                    delay: .seconds(60)))
        }
        return found
    }

    /// Returns what disk, memory and the log show.
    private static func resourceFindings(_ facts: NodeFacts) -> [Finding] {
        var found: [Finding] = []
        if let fault = facts.diskFault {
            found.append(
                Finding(
                    condition: Condition(
                        fault.refusesWrites ? .diskFull : .diskDown, .critical,
                        "The disk is not used"
                            + (fault.refusesWrites ? " because it accepts no writes" : "")
                            + (fault.why.isEmpty ? "." : ": \(fault.why)."),
                        advice: fault.refusesWrites
                            ? "Free space on the file system of cache-dir, or lower disk-limit; "
                                + "remount it if it is read-only. The node tries again by itself."
                            : "Repair the fault. The node serves from memory and origins, and "
                                + "tries again by itself.",
                        alert: "NuthatchDiskDown")))
        }
        let recent = facts.history.window(.seconds(300), until: facts.now)
        let (late, written) = (recent[.diskRecordsQueueFull], recent[.diskRecordsAdmitted])
        // A tenth: bursts fill the queue of any disk.
        if late >= requestsMin, late * 10 >= late + written {
            found.append(
                Finding(
                    condition: Condition(
                        .diskSlow, .warning,
                        "\(late) of \(late + written) responses of the last "
                            + "\(text(recent.duration)) were not written: the disk is too slow.",
                        advice:
                            "Use a faster disk. A larger disk-queue-limit helps only with bursts.",
                        alert: "NuthatchDiskTooSlow")))
        }
        let metrics = facts.now.metrics
        if metrics[.memoryUnderPressure] == 1 {
            let (held, limit) = (metrics[.memoryEffectiveLimitBytes], metrics[.memoryLimitBytes])
            found.append(
                Finding(
                    condition: Condition(
                        .memoryShort, .warning,
                        "Memory is short: the node uses at most \(held >> 20) of "
                            + "\(limit >> 20) MiB.",
                        advice: "Lower memory-limit, or give the node memory. The log says which "
                            + "limit is reached.",
                        alert: "NuthatchMemoryShort"),
                    // A peak of another process passes.
                    delay: .seconds(60)))
        }
        let minute = facts.history.window(.seconds(60), until: facts.now)
        if minute[.accessLinesDropped] > 0 {
            found.append(
                Finding(
                    condition: Condition(
                        .accessLogLost, .warning,
                        "\(minute[.accessLinesDropped]) lines of the access log were lost in the "
                            + "last \(text(minute.duration)).",
                        advice: "Speed up the reader of standard output, or turn access-log off.",
                        alert: "NuthatchAccessLogLost")))
        }
        return found
    }

    /// Returns the certificates that expire soon.
    ///
    /// Certificates of 90 days, the shortest that are renewed by hand, are reported at 30 and at 7
    /// days; those that live less are renewed by a program, at a third of their life at the latest.
    private static func certificateFindings(_ facts: NodeFacts) -> [Finding] {
        // Of one file, the certificate that ends first.
        var files: Set<String> = []
        let certificates = facts.certificates.sorted { $0.notAfter.seconds < $1.notAfter.seconds }
        return certificates.compactMap { certificate -> Finding? in
            guard files.insert(certificate.file).inserted else { return nil }
            let life = certificate.notAfter.seconds - certificate.notBefore.seconds
            let left = certificate.notAfter.seconds - facts.wall.seconds
            guard left < min(30 * day, life / 3) else { return nil }
            let end =
                left < 0
                ? "has expired"
                : left < 2 * day
                    ? "expires in \(left / 3600) h"
                    : "expires in \(left / day) days"
            return Finding(
                condition: Condition(
                    .certificateExpiring, left < min(7 * day, life / 12) ? .critical : .warning,
                    subject: certificate.file,
                    "The certificate of \(list(certificate.names)) \(end).",
                    advice: "Install the new certificate, and send SIGHUP."))
        }
    }

    private static let day: Int64 = 86_400
}
