import Admin
import Cluster
import FoundationEssentials
import Glibc
import Ground
import HTTPRules
import Logging
import Origin
import Store
import Telemetry

/// What operators are shown of the node as a whole.
extension NodeCore {
    func status(for role: AdminRole) -> StatusDocument {
        let now = SystemClock.now()
        return StatusDocument(
            node: "\(purges.id)", process: "\(purges.process)", version: Configuration.version,
            uptimeMilliseconds: (now - startedAt).milliseconds, role: role,
            readiness: readiness.value,
            fencedMilliseconds: fence.closedDuration(at: now)?.milliseconds,
            snapshot: snapshot(), hasDisk: disk != nil, isInCluster: hub != nil,
            missing: hub?.missingSeeds ?? [], receiptsPending: purges.receiptsPending,
            sites: settings.sites.names)
    }

    func statistics() -> StatisticsDocument {
        let now = SystemClock.now()
        return StatisticsDocument(
            uptimeMilliseconds: (now - startedAt).milliseconds, snapshot: snapshot(),
            readiness: readiness.value,
            fencedMilliseconds: fence.closedDuration(at: now)?.milliseconds, hasDisk: disk != nil,
            isInCluster: hub != nil, receiptsPending: purges.receiptsPending, members: memberRows())
    }

    /// None for a node that is in no cluster.
    func memberRows() -> [MemberDocument] {
        guard let hub else { return [] }
        return MemberDocument.rows(hub, purges.voterTable(at: SystemClock.now())) {
            purges.lags(of: $0)
        }
    }

    /// A node that is in no cluster owns everything.
    func ringDocument() -> RingDocument {
        guard let ring = hub?.ringUpdater.ring, !ring.members.isEmpty else {
            return RingDocument(
                slots: RingSlot.count, shares: [.init(node: "\(purges.id)", first: 1, second: 0)],
                strip: Array(repeating: 0, count: RingDocument.ownershipSampleCount))
        }
        let second = ring.shares(at: 1)
        let shares = ring.members.indices.map { index in
            RingDocument.Share(
                node: "\(ring.members[index].id)", first: ring.share(of: ring.members[index].id),
                second: second[index])
        }
        let strip = (0..<RingDocument.ownershipSampleCount).map { step in
            let slot = RingSlot(
                number: UInt32(step * RingSlot.count / RingDocument.ownershipSampleCount))
            return ring.owners(of: slot).memberIndex(at: 0)
        }
        return RingDocument(slots: RingSlot.count, shares: shares, strip: strip)
    }
}

extension Configuration {
    /// The settings that hold, for operators.
    var document: ConfigurationDocument {
        let rows = Setting.table.map { setting in
            ConfigurationDocument.Entry(
                setting, values.texts(setting.name),
                source: values.source(setting.name).text(for: setting.name))
        }
        let sites = values.siteBlocks.map { site in
            ConfigurationDocument.Site(
                "\(site.pattern)", origin: "\(site.origin)",
                options: site.shownOptions.map { ($0.option.rawValue, $0.yaml) })
        }
        return ConfigurationDocument(
            rows: rows, sites: sites,
            images: values.images.shownOptions.map { ($0.name, $0.yaml) })
    }
}

extension OriginDocument {
    init(_ standing: OriginStatus) {
        let circuit =
            switch standing.circuit {
            case .closed: "closed"
            case .open: "open"
            case .halfOpen: "half-open"
            }
        self.init(
            origin: standing.origin.description, connections: standing.connections,
            idle: standing.idle, waiting: standing.waiting, circuit: circuit,
            failures: standing.failures,
            retryAfterMilliseconds: standing.retryAfter?.milliseconds)
    }
}

/// What is asked for most.
extension NodeCore {
    /// `counters` are of all loops.
    func hotEntries(_ counters: [SpaceSaving.Counter], limit: Int) -> HotEntriesDocument {
        var counts: [UInt64: UInt64] = [:]
        for counter in counters { counts[counter.key, default: 0] += counter.count - counter.error }
        let hottest = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        var rows: [HotEntriesDocument.Entry] = []
        for (hash, count) in hottest where rows.count < limit {
            guard let entry = store.entry(withHash: hash), entry.status == 200 else {
                continue
            }
            rows.append(HotEntriesDocument.Entry(entry, accesses: count))
        }
        return HotEntriesDocument(rows: rows)
    }
}

extension HotEntriesDocument.Entry {
    fileprivate init(_ entry: MemoryEntry, accesses: UInt64) {
        let key = String(decoding: entry.key, as: UTF8.self)
        let head = RenderedHead(entry)
        let type = String(decoding: head.slice(head.layout.contentType), as: UTF8.self)
        self.init(
            key: key, url: Self.url(key), contentType: type, bodyBytes: entry.metadata.size,
            accesses: accesses)
    }

    /// An image's key is its URL; a site's lacks the scheme, and may say at its end which it is.
    private static func url(_ key: String) -> String {
        let base = key.prefix { $0 != "\n" }
        guard base.hasPrefix("//") else { return String(base) }
        let isSecure = base.hasSuffix("#https")
        return (isSecure ? "https:" : "http:") + (isSecure ? base.dropLast(6) : base)
    }
}

/// What operators do about who is counted; each gives why it was refused, or nil if it has begun.
extension NodeCore {
    /// Begins to count members no longer that will not come back: ids with commas between them.
    func forgetMembers(_ texts: String) -> Problem? {
        let parts = texts.split(separator: ",", omittingEmptySubsequences: false)
        let ids = parts.compactMap { NodeID(String($0)) }
        guard ids.count == parts.count else { return .memberUnknown }
        do throws(FenceCoordinator.ForgetRefusal) {
            try purges.forget(ids)
            return nil
        } catch {
            let known = memberRows().map(\.node)
            let areKnown = ids.allSatisfy { known.contains("\($0)") }
            if case .notVoters = error, !areKnown { return .memberUnknown }
            return .notForgotten(error)
        }
    }

    /// Opens a cluster.
    func bootstrap() -> Problem? {
        guard hub != nil, !purges.hasVoters else { return .notBootstrapped }
        purges.handle(.formationRuleChanged(.operatorOrdered))
        // Whoever is here may have a cluster of its own.
        guard purges.hasVoters else { return .notBootstrapped }
        logger.notice("the operator has this node open a cluster")
        return nil
    }

    /// Begins the count anew with this node.
    func recover() -> Problem? {
        // Without a fence nobody is ever fenced.
        let isFenced = fence.interval == .zero || !fence.isOpen(at: SystemClock.now())
        guard hub != nil, purges.hasVoters, isFenced else { return .notRecovered }
        purges.handle(.recoveryRequested)
        logger.notice("the operator has the count begin anew with this node")
        return nil
    }
}

/// All of a node at once, for whoever has to find out what is wrong with it.
extension NodeCore {
    /// Reads files; not for a loop.
    func supportSnapshot(for role: AdminRole) -> SupportDocument {
        let receipts = purges.recentPurges(100).compactMap { ReceiptDocument($0, at: self) }
        return SupportDocument(
            takenAt: CivilTime(milliseconds: SystemClock.wallMilliseconds()).isoText,
            process: .ofThisProcess(),
            status: status(for: role), statistics: statistics(),
            configuration: configurationDocument,
            logLevel: LogLevelDocument(logger.logLevel.rawValue), members: memberRows(),
            ring: ringDocument(),
            origins: exchange.statuses(now: SystemClock.now()).map(OriginDocument.init),
            purges: receipts, prefetches: prefetcher.documents(),
            metrics: String(
                decoding: MetricsExposition.render(snapshotWithMembers(), as: .text), as: UTF8.self)
        )
    }
}

extension SupportDocument.Process {
    fileprivate static func ofThisProcess() -> SupportDocument.Process {
        var process = SupportDocument.Process()
        process.id = getpid()
        process.processors = ProcessInfo.processInfo.activeProcessorCount
        if let kernel = text(of: "/proc/version") { process.system = kernel }
        if let status = text(of: "/proc/self/status") { process.parse(status: status) }
        let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        process.openDescriptors = descriptors?.count
        var limit = rlimit()
        if unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            process.descriptorsMax = Int(clamping: limit.rlim_cur)
        }
        var usage = rusage()
        if unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 {
            process.userMilliseconds = milliseconds(usage.ru_utime)
            process.systemMilliseconds = milliseconds(usage.ru_stime)
        }
        return process
    }

    private static func text(of path: String) -> String? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        let text = String(decoding: data, as: UTF8.self)
        return text.hasSuffix("\n") ? String(text.dropLast()) : text
    }

    private static func milliseconds(_ time: timeval) -> Int64 {
        Int64(time.tv_sec) * 1_000 + Int64(time.tv_usec) / 1_000
    }
}

/// What an operator wants of the node as a whole.
enum OperatorCommand: Hashable, Sendable {
    /// Own nothing any more and hand over what is kept; then go on to run, or stop.
    case drain(stops: Bool)
    /// Own again.
    case undrain
}
