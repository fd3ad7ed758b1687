import Admin
import Cluster
import FoundationEssentials
import Glibc
import Ground
import HTTPRules
import Logging
import NodeConfiguration
import Peering
import Platform
import Store
import Telemetry

/// The documents that describe the node as a whole to operators.
extension NodeCore {
    /// Updates the gauges and returns the node's statistics, including one row per member.
    func statistics() -> StatisticsDocument {
        let (now, snapshot) = (SystemClock.now(), snapshot())
        var document = StatisticsDocument(snapshot)
        document.uptimeMilliseconds = (now - startedAt).milliseconds
        document.readiness = readiness.value.rawValue
        document.fencedMilliseconds = fence.closedDuration(at: now)?.milliseconds
        document.disk = disk.map { _ in .init(snapshot) }
        document.invalidations = .init(snapshot, receiptsPending: purges.receiptsPending)
        document.cluster = hub.map { _ in .init(snapshot) }
        document.members = memberRows()
        return document
    }

    /// Returns one row per member; empty for a node that is in no cluster.
    func memberRows() -> [MemberDocument] {
        guard let hub else { return [] }
        return MemberDocument.rows(hub, purges.voterTable(at: SystemClock.now())) {
            purges.lags(of: $0)
        }
    }
}

extension RingDocument {
    /// Creates the shares of the ring as `node` sees it; a node in no cluster owns everything.
    init(of node: NodeCore) {
        guard let ring = node.hub?.ringUpdater.ring, !ring.members.isEmpty else {
            self.init(
                slots: RingSlot.count,
                shares: [.init(node: "\(node.purges.id)", primary: 1, secondary: 0)])
            return
        }
        let second = ring.shares(at: 1)
        let shares = ring.members.indices.map { index in
            Share(
                node: "\(ring.members[index].id)", primary: ring.share(of: ring.members[index].id),
                secondary: second[index])
        }
        self.init(slots: RingSlot.count, shares: shares)
        ownershipSample = (0..<Self.ownershipSampleCount).map { step in
            let slot = RingSlot(number: UInt32(step * RingSlot.count / Self.ownershipSampleCount))
            return ring.owners(of: slot).memberIndex(at: 0)
        }
    }
}

extension StatusDocument {
    /// Creates the status of `node` for a caller with `role`.
    init(of node: NodeCore, for role: AdminRole) {
        self.init()
        let (now, snapshot) = (SystemClock.now(), node.snapshot())
        self.node = "\(node.purges.id)"
        process = "\(node.purges.process)"
        version = Configuration.version
        uptimeMilliseconds = (now - node.startedAt).milliseconds
        self.role = role.rawValue
        readiness = node.readiness.value.rawValue
        fencedMilliseconds = node.fence.closedDuration(at: now)?.milliseconds
        memory = .init(snapshot)
        disk = node.disk.map { _ in .init(snapshot) }
        cluster = node.hub.map { _ in .init(snapshot) }
        unreachableSeeds = node.hub?.missingSeeds ?? []
        invalidations = .init(snapshot, receiptsPending: node.purges.receiptsPending)
        sites = node.settings.sites.names
    }
}

/// The most requested entries.
extension NodeCore {
    /// Returns the `limit` most requested entries in memory; `counts` are accesses by the hash of
    /// the key.
    func hotEntries(
        _ counts: [UInt64: UInt64], limit: Int
    ) -> DocumentList<HotEntryDocument> {
        let hottest = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        var entries: [HotEntryDocument] = []
        for (hash, count) in hottest where entries.count < limit {
            guard let entry = store.entry(withHash: hash), entry.status == 200 else {
                continue
            }
            entries.append(HotEntryDocument(entry, accesses: count))
        }
        return DocumentList(entries)
    }
}

extension HotEntryDocument {
    /// Creates the document of an entry in memory that was requested `accesses` times.
    fileprivate init(_ entry: MemoryEntry, accesses: UInt64) {
        self.init()
        key = String(decoding: entry.key, as: UTF8.self)
        url = Self.url(key)
        let head = RenderedHead(entry)
        contentType = String(decoding: head.slice(head.layout.contentTypeExtent), as: UTF8.self)
        bodyBytes = entry.metadata.size
        self.accesses = accesses
    }

    /// Returns the URL of an entry's key: an image's key is its URL, and a site's lacks the scheme,
    /// with `#https` at its end for HTTPS.
    private static func url(_ key: String) -> String {
        let base = key.prefix { $0 != "\n" }
        guard base.hasPrefix("//") else { return String(base) }
        let isSecure = base.hasSuffix("#https")
        return (isSecure ? "https:" : "http:") + (isSecure ? base.dropLast(6) : base)
    }
}

/// Operators' commands about the voter set; each returns the reason for a refusal, or `nil` once it
/// has begun.
extension NodeCore {
    /// Begins to remove members that will not return from the voter set.
    ///
    /// - Parameter texts: node ids, separated by commas.
    /// - Returns: the reason for a refusal; `nil` once it has begun.
    func forgetMembers(_ texts: String) -> Problem? {
        let parts = texts.split(separator: ",", omittingEmptySubsequences: false)
        let ids = parts.compactMap { NodeID(String($0)) }
        guard ids.count == parts.count else { return .memberUnknown }
        do throws(FenceCoordinator.RemovalRefusal) {
            try purges.forget(ids)
            return nil
        } catch {
            let known = memberRows().map(\.node)
            let areKnown = ids.allSatisfy { known.contains("\($0)") }
            if case .notVoters = error, !areKnown { return .memberUnknown }
            return .notForgotten(error)
        }
    }

    /// Orders this node to form a new cluster; returns the refusal if the node is in one, is not
    /// configured for one, or can reach a member of one.
    func bootstrap() -> Problem? {
        guard hub != nil, !purges.hasVoters else { return .notBootstrapped }
        purges.handle(.formationRuleChanged(.operatorOrdered))
        // A node that is in reach may have a cluster of its own.
        guard purges.hasVoters else { return .notBootstrapped }
        logger.notice("forming a new cluster at the operator's request")
        return nil
    }

    /// Begins a new voter set with this node as its only member; returns the refusal if the node
    /// knows no voter set or has a fence that is open.
    func recover() -> Problem? {
        // Without a fence no node is ever fenced.
        let isFenced = fence.interval == .zero || !fence.isOpen(at: SystemClock.now())
        guard hub != nil, purges.hasVoters, isFenced else { return .notRecovered }
        purges.handle(.recoveryRequested)
        logger.notice("starting a new voter set with this node at the operator's request")
        return nil
    }
}

extension SupportDocument {
    /// Creates the snapshot of everything that helps to diagnose `node`, for a caller with `role`.
    ///
    /// It reads files, so it must not be created on an event loop.
    init(of node: NodeCore, for role: AdminRole) {
        self.init()
        takenAt = CivilTime(milliseconds: SystemClock.wallMilliseconds()).isoText
        process = .ofThisProcess()
        status = StatusDocument(of: node, for: role)
        statistics = node.statistics()
        configuration = node.configurationDocument
        logLevel = LogLevelDocument(node.logger.logLevel.rawValue)
        members = DocumentList(node.memberRows())
        ring = RingDocument(of: node)
        origins = DocumentList(of: node)
        purges = DocumentList(
            node.purges.recentPurges(100).compactMap { ReceiptDocument($0, at: node) })
        prefetches = DocumentList(node.prefetcher.documents())
        metrics = String(
            decoding: MetricsExposition.render(node.snapshotWithMembers(), as: .text), as: UTF8.self
        )
    }
}

extension SupportDocument.Process {
    /// Returns the facts about this process that `/proc` and the kernel give.
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

    /// Returns the contents of a file without the final newline; `nil` if it cannot be read.
    private static func text(of path: String) -> String? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        let text = String(decoding: data, as: UTF8.self)
        return text.hasSuffix("\n") ? String(text.dropLast()) : text
    }

    /// Returns a time in milliseconds.
    private static func milliseconds(_ time: timeval) -> Int64 {
        Int64(time.tv_sec) * 1_000 + Int64(time.tv_usec) / 1_000
    }
}

/// An operator's command to the node as a whole.
package enum OperatorCommand: Hashable, Sendable {
    /// Drop ownership and hand off all entries; then stop if `stops` is true.
    case drain(stops: Bool)
    /// Take ownership again.
    case undrain
}
