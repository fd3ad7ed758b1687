import Admin
import Ground
import NodeConfiguration
import Origin
import Platform
import Store
import Synchronization
import Telemetry

/// What the node remembers in order to tell operators of its faults: the traffic of the last hour,
/// and since when conditions hold.
///
/// Thread-safe.
package final class ConditionMonitor: Sendable {
    /// The guarded state.
    struct State: Sendable {
        var history = TrafficHistory()
        var log = ConditionLog()
        /// The conditions as of the last evaluation, which is at most 10 s ago.
        var latest = ConditionsDocument()
        /// The certificates in force.
        var certificates: [TLSMaterial.LoadedCertificate] = []
    }

    private let state = Mutex(State())

    /// Creates a monitor that has seen nothing.
    init() {}

    /// Runs `body` with the state under the lock.
    func withState<Result: Sendable>(_ body: (inout sending State) -> sending Result) -> Result {
        state.withLock(body)
    }

    /// The certificates that the node has loaded, as of the last start or reload.
    package var certificates: [TLSMaterial.LoadedCertificate] {
        get { state.withLock { $0.certificates } }
        set { state.withLock { $0.certificates = newValue } }
    }
}

/// The node's faults and recent traffic.
extension NodeCore {
    /// Records the traffic of an interval that has ended; call it several times a second, on one
    /// loop.
    func recordTraffic(now: Instant) {
        let uptime = now - startedAt
        guard monitor.withState({ $0.history.isDue(at: uptime) }) else { return }
        let sample = trafficSample(snapshot(), at: uptime)
        monitor.withState { $0.history.record(sample) }
        // Conditions are evaluated even if nobody asks, because they must hold for some time.
        _ = conditions(sample, now: now)
    }

    /// Returns the faults that the node knows of, the worst first.
    func conditions() -> ConditionsDocument {
        let now = SystemClock.now()
        return conditions(trafficSample(snapshot(), at: now - startedAt), now: now)
    }

    /// Returns the faults that follow from the present counters.
    private func conditions(_ sample: TrafficSample, now: Instant) -> ConditionsDocument {
        var facts = facts(sample, now: now)
        return monitor.withState { state in
            facts.history = state.history
            state.latest = state.log.record(ConditionRules.findings(facts), at: sample.uptime)
            return state.latest
        }
    }

    /// Returns the facts other than the history.
    private func facts(_ sample: TrafficSample, now: Instant) -> NodeFacts {
        var facts = NodeFacts(now: sample)
        facts.readiness = readiness.value
        facts.fenced = fence.closedDuration(at: now)
        facts.missingSeeds = hub?.missingSeeds
        facts.cluster = ClusterFacts(of: self, members: memberRows(), now: now)
        facts.origins = originCoordinator.statuses(now: now).map { NodeFacts.Origin($0, now: now) }
        facts.siteOrigins = settings.sitePolicies.compactMap { policy in
            policy.origin.map { (policy.name, $0.url) }
        }
        facts.certificates = monitor.certificates.map {
            NodeFacts.Certificate(
                file: $0.file, names: $0.summary.names, notBefore: $0.summary.notBefore,
                notAfter: $0.summary.notAfter)
        }
        facts.wall = SystemClock.wallTime()
        if let disk, !disk.isAvailable {
            let fault = disk.fault
            facts.diskFault = NodeFacts.DiskFault(
                why: fault?.why ?? "", refusesWrites: fault?.refusesWrites ?? false)
        }
        return facts
    }

    /// Returns the counters in `snapshot` as a sample taken at `uptime`.
    private func trafficSample(_ snapshot: MetricsSnapshot, at uptime: Interval) -> TrafficSample {
        var rows = snapshot.sites.map { ($0.name, StatusCounts($0)) }
        if settings.servesImages {
            rows.append((SiteDocument.imagesName, imageResponses(snapshot)))
        }
        let sites = rows.map {
            TrafficSample.SiteCounts(
                site: $0.0, requests: $0.1.all, serverErrors: $0.1.serverErrors)
        }
        return TrafficSample(snapshot, sites: sites, at: uptime)
    }

    /// Returns the traffic of the last hour.
    func historyDocument() -> HistoryDocument {
        HistoryDocument(monitor.withState { $0.history })
    }
}

/// The sites and their certificates.
extension NodeCore {
    /// Returns the traffic and the health of each site, and of images if the node serves them.
    func siteDocuments() -> DocumentList<SiteDocument> {
        let (now, snapshot, settings) = (SystemClock.now(), snapshot(), settings)
        let origins = originDocuments(now: now)
        var facts = NodeFacts(now: trafficSample(snapshot, at: now - startedAt))
        facts.history = monitor.withState { $0.history }
        var rows = zip(settings.sitePolicies, snapshot.sites).map { policy, counts in
            var row = SiteDocument()
            row.site = counts.name
            row.requests = SourceCounts { counts[.requests($0)] }
            row.bytes = SourceCounts { counts[.bodyBytes($0)] }
            row.responses = StatusCounts(counts)
            row.originReceivedBytes = counts[.originBytes]
            row.origins = policy.origin.map { [$0.url] } ?? []
            let origin = origins.first {
                $0.isOperatorConfigured && row.origins == [$0.document.url]
            }
            row.lastError = origin?.document.lastError
            row.health = origin?.document.health ?? row.health
            return row
        }
        if settings.servesImages { rows.append(imageRow(snapshot, origins)) }
        for index in rows.indices where rows[index].health == OriginHealth.ok.rawValue {
            guard ConditionRules.failures(ofSite: rows[index].site, facts) != nil else { continue }
            rows[index].health = OriginHealth.failing.rawValue
        }
        return DocumentList(rows)
    }

    /// Returns the row of images requested by their URLs: what belongs to no site.
    private func imageRow(
        _ snapshot: MetricsSnapshot,
        _ origins: [(document: OriginDocument, isOperatorConfigured: Bool)]
    ) -> SiteDocument {
        let parts = snapshot.sites + [siteCounters.removed]
        var row = SiteDocument()
        row.site = SiteDocument.imagesName
        row.requests = parts.reduce(SourceCounts(begun: snapshot)) { rest, part in
            rest.merged(SourceCounts { part[.requests($0)] }, Self.rest)
        }
        row.bytes = parts.reduce(SourceCounts { snapshot.outcomes[$0].bodyBytes }) { rest, part in
            rest.merged(SourceCounts { part[.bodyBytes($0)] }, Self.rest)
        }
        row.responses = imageResponses(snapshot)
        row.originReceivedBytes = parts.reduce(snapshot[.originReceivedBytes]) {
            Self.rest($0, $1[.originBytes])
        }
        let named = origins.filter { !$0.isOperatorConfigured }.map(\.document)
        row.origins = named.prefix(Self.imageOriginsMax).map(\.url)
        row.lastError = named.compactMap(\.lastError).min {
            $0.millisecondsAgo < $1.millisecondsAgo
        }
        return row
    }

    /// Maximum number of origins that the row of images lists; clients name any number.
    private static let imageOriginsMax = 100

    /// Returns the responses that belong to no site.
    private func imageResponses(_ snapshot: MetricsSnapshot) -> StatusCounts {
        (snapshot.sites + [siteCounters.removed]).reduce(StatusCounts(snapshot)) {
            $0.merged(StatusCounts($1), Self.rest)
        }
    }

    /// Returns the difference of two counts that were not read at the same instant.
    private static func rest(_ all: UInt64, _ part: UInt64) -> UInt64 {
        all > part ? all - part : 0
    }

    /// Returns the state of each origin, and whether the operator has named it.
    func originDocuments(
        now: Instant
    ) -> [(document: OriginDocument, isOperatorConfigured: Bool)] {
        originCoordinator.statuses(now: now).map {
            (OriginDocument($0, now: now), $0.origin.isOperatorConfigured)
        }
    }

    /// Returns the certificates that the node has loaded.
    func certificateDocuments() -> DocumentList<CertificateDocument> {
        let wall = SystemClock.wallTime()
        return DocumentList(
            monitor.certificates.map { certificate in
                var row = CertificateDocument()
                let end = certificate.summary.notAfter.seconds
                row.file = certificate.file
                row.names = certificate.summary.names
                row.notAfter = CivilTime(milliseconds: end * 1_000).isoText
                row.daysLeft = Int(((end - wall.seconds) / 86_400))
                if end < wall.seconds { row.daysLeft -= 1 }
                row.use =
                    (certificate.isIssuer
                    ? CertificateDocument.Use.operators : .clients).rawValue
                return row
            })
    }
}

extension OriginDocument {
    /// Creates the document of an origin's status at `now`.
    init(_ status: OriginStatus, now: Instant) {
        self.init()
        let traffic = status.traffic
        origin = status.origin.description
        url = status.origin.url
        connections = status.connections
        idle = status.idle
        waiting = status.waiting
        circuit =
            switch status.circuit {
            case .closed: "closed"
            case .open: "open"
            case .halfOpen: "half-open"
            }
        failures = status.failures
        retryAfterMilliseconds = status.retryAfter?.milliseconds
        fetches = traffic.fetches
        failed = traffic.failed
        receivedBytes = traffic.receivedBytes
        failuresByReason = NamedCounts(
            Metric.allCases.compactMap { metric in
                traffic.failures[metric].map { (OriginMetrics.failures.label(of: metric), $0) }
            })
        lastError = traffic.lastFailure.map {
            LastErrorDocument(
                reason: OriginMetrics.failures.label(of: $0.metric), detail: $0.detail,
                millisecondsAgo: (now - $0.at).milliseconds)
        }
        let recent = status.recentOutcomes(now: now)
        health =
            ConditionRules.health(
                isCircuitOpen: status.isCircuitOpen, all: recent.all, bad: recent.bad
            ).rawValue
    }
}

extension NodeFacts.Origin {
    /// Creates the facts of an origin from its status at `now`.
    fileprivate init(_ status: OriginStatus, now: Instant) {
        let recent = status.recentOutcomes(now: now)
        self.init(
            OriginDocument(status, now: now),
            isOperatorConfigured: status.origin.isOperatorConfigured, all: recent.all,
            bad: recent.bad)
    }
}

extension OriginStatus {
    /// Returns the outcomes of the last 10 to 20 s if they are enough to judge, otherwise those of
    /// the last minute.
    fileprivate func recentOutcomes(now: Instant) -> OriginTraffic.Outcomes {
        let recent = traffic.outcomes(slots: 1, now: now)
        return recent.all >= Int(ConditionRules.requestsMin)
            ? recent : traffic.outcomes(slots: 6, now: now)
    }
}
