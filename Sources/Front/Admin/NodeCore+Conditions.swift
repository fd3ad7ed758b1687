import Admin
import Ground
import HTTPRules
package import NodeConfiguration
import Origin
import Peering
import Platform
import Store
import Synchronization
import Telemetry
import Wire

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
        let sample = TrafficSample(of: self, snapshot(), at: uptime)
        monitor.withState { $0.history.record(sample) }
        // Conditions are evaluated even if nobody asks, because they must hold for some time.
        _ = conditions(sample, now: now)
    }

    /// Returns the faults that the node knows of, the worst first.
    func conditions() -> ConditionsDocument {
        let now = SystemClock.now()
        return conditions(TrafficSample(of: self, snapshot(), at: now - startedAt), now: now)
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
        facts.origins = originCoordinator.faultyStatuses(now: now)
            .map { NodeFacts.Origin($0, now: now) }
        for policy in settings.sitePolicies {
            facts.siteOrigins[policy.name] = policy.origin?.url
        }
        facts.certificates = monitor.certificates.map { NodeFacts.Certificate($0) }
        facts.wall = SystemClock.wallTime()
        facts.diskFault = disk.flatMap { NodeFacts.DiskFault(of: $0) }
        return facts
    }
}

// MARK: Facts

extension TrafficSample {
    /// Creates a sample of `node` from its counters in `snapshot`, taken at `uptime`.
    fileprivate init(of node: NodeCore, _ snapshot: MetricsSnapshot, at uptime: Interval) {
        var rows = snapshot.sites.map { ($0.name, StatusCounts($0)) }
        if node.settings.servesImages {
            rows.append((SiteDocument.imagesName, RemainingTraffic(of: node, snapshot).responses))
        }
        let sites = rows.map {
            SiteCounts(site: $0.0, requests: $0.1.all, serverErrors: $0.1.serverErrors)
        }
        self.init(snapshot, sites: sites, at: uptime)
    }
}

extension NodeFacts.Certificate {
    /// Creates the facts of a loaded certificate.
    fileprivate init(_ loaded: TLSMaterial.LoadedCertificate) {
        self.init(
            file: loaded.file, names: loaded.summary.names, notBefore: loaded.summary.notBefore,
            notAfter: loaded.summary.notAfter)
    }
}

extension NodeFacts.DiskFault {
    /// Creates the fault of `disk`; `nil` if it is in use.
    fileprivate init?(of disk: DiskStore) {
        guard !disk.isAvailable else { return nil }
        let fault = disk.fault
        self.init(why: fault?.why ?? "", refusesWrites: fault?.refusesWrites ?? false)
    }
}

// MARK: Sites

extension DocumentList<SiteDocument> {
    /// Creates the list of the sites of `node`, and of images if it serves them, with their traffic
    /// and health.
    init(of node: NodeCore) {
        let (now, snapshot, settings) = (SystemClock.now(), node.snapshot(), node.settings)
        let origins = node.originCoordinator.statuses(now: now).map {
            NodeFacts.Origin($0, now: now)
        }
        var facts = NodeFacts(now: TrafficSample(of: node, snapshot, at: now - node.startedAt))
        facts.history = node.monitor.withState { $0.history }
        var rows = zip(settings.sitePolicies, snapshot.sites).map { policy, counts in
            SiteDocument(counts, origin: policy.origin?.url, among: origins)
        }
        if settings.servesImages {
            rows.append(SiteDocument(ofImages: RemainingTraffic(of: node, snapshot), origins))
        }
        for index in rows.indices where rows[index].health == OriginHealth.ok.rawValue {
            // The samples have the sites in the same order.
            guard ConditionRules.failures(ofSite: index, facts) != nil else { continue }
            rows[index].health = OriginHealth.failing.rawValue
        }
        self.init(rows)
    }
}

extension SiteDocument {
    /// Creates the row of a site from its counters, with the health of its origin.
    fileprivate init(_ counts: SiteSnapshot, origin url: String?, among origins: [NodeFacts.Origin])
    {
        self.init()
        site = counts.name
        requests = SourceCounts { counts[.requests($0)] }
        bytes = SourceCounts { counts[.bodyBytes($0)] }
        responses = StatusCounts(counts)
        originReceivedBytes = counts[.originBytes]
        self.origins = url.map { [$0] } ?? []
        let origin = origins.first { $0.isOperatorConfigured && $0.document.url == url }?.document
        lastError = origin?.lastError
        health = origin?.health ?? health
    }

    /// Creates the row of images requested by their URLs, whose origins clients name.
    fileprivate init(ofImages traffic: RemainingTraffic, _ origins: [NodeFacts.Origin]) {
        self.init()
        site = Self.imagesName
        requests = traffic.requests
        bytes = traffic.bytes
        responses = traffic.responses
        originReceivedBytes = traffic.originBytes
        let named = origins.filter { !$0.isOperatorConfigured }.map(\.document)
        self.origins = named.prefix(Self.imageOriginsMax).map(\.url)
        lastError = named.compactMap(\.lastError).min { $0.millisecondsAgo < $1.millisecondsAgo }
    }

    /// Maximum number of origins that the row of images lists; clients name any number.
    private static let imageOriginsMax = 100
}

/// The traffic that belongs to no site, present or removed: images requested by their URLs, and the
/// node's own pages.
private struct RemainingTraffic {
    let requests: SourceCounts
    let bytes: SourceCounts
    let responses: StatusCounts
    let originBytes: UInt64

    /// Subtracts the sites' traffic from that of `node` in `snapshot`.
    init(of node: NodeCore, _ snapshot: MetricsSnapshot) {
        let parts = snapshot.sites + [node.siteCounters.removed]
        requests = parts.reduce(SourceCounts(begun: snapshot)) { rest, part in
            rest.merged(SourceCounts { part[.requests($0)] }, Self.difference)
        }
        bytes = parts.reduce(SourceCounts { snapshot.outcomes[$0].bodyBytes }) { rest, part in
            rest.merged(SourceCounts { part[.bodyBytes($0)] }, Self.difference)
        }
        responses = parts.reduce(StatusCounts(snapshot)) {
            $0.merged(StatusCounts($1), Self.difference)
        }
        originBytes = parts.reduce(snapshot[.originReceivedBytes]) {
            Self.difference($0, $1[.originBytes])
        }
    }

    /// Returns the difference of two counts that were not read at the same instant.
    private static func difference(_ all: UInt64, _ part: UInt64) -> UInt64 {
        all > part ? all - part : 0
    }
}

// MARK: Certificates and origins

extension DocumentList<CertificateDocument> {
    /// Creates the list of the certificates that `node` has loaded.
    init(of node: NodeCore) {
        let wall = SystemClock.wallTime()
        self.init(node.monitor.certificates.map { CertificateDocument($0, at: wall) })
    }
}

extension CertificateDocument {
    /// Creates the document of a certificate at the time `wall`.
    fileprivate init(_ loaded: TLSMaterial.LoadedCertificate, at wall: WallTime) {
        self.init()
        let end = loaded.summary.notAfter.seconds
        let (days, seconds) = (end - wall.seconds).quotientAndRemainder(dividingBy: 86_400)
        file = loaded.file
        names = loaded.summary.names
        notAfter = CivilTime(milliseconds: end * 1_000).isoText
        daysLeft = Int(seconds < 0 ? days - 1 : days)
        use = (loaded.isIssuer ? Use.operators : .clients).rawValue
    }
}

extension DocumentList<OriginDocument> {
    /// Creates the list of the origins that `node` knows.
    init(of node: NodeCore) {
        let now = SystemClock.now()
        self.init(node.originCoordinator.statuses(now: now).map { OriginDocument($0, now: now) })
    }
}

extension OriginDocument {
    /// Creates the document of an origin's status at `now`.
    fileprivate init(_ status: OriginStatus, now: Instant) {
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
            traffic.failures.sorted { $0.key.rawValue < $1.key.rawValue }
                .map { (OriginMetrics.failures.label(of: $0.key), $0.value) })
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
        return ConditionRules.isConclusive(all: recent.all, bad: recent.bad)
            ? recent : traffic.outcomes(slots: 6, now: now)
    }
}
