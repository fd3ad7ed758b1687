import Admin
import Cluster
import Ground
import NodeConfiguration
import Peering
import Platform
import Telemetry

extension ClusterFacts {
    /// Creates the facts that `node` knows of its cluster, which has the given `members`; none for
    /// a node that is in no cluster.
    init(of node: NodeCore, members: [MemberDocument], now: Instant) {
        self.init()
        guard let hub = node.hub else { return }
        let reports = hub.reporter.reports
        self.members = members
        unconfirmedPurges = node.purges.receiptsPending
        rejectedPeers = reports.rejections.current(now: now).map { rejection in
            let node = rejection.isDialled ? rejection.address : "A node at \(rejection.address)"
            return RejectedPeer(
                address: rejection.address, summary: "\(node) \(Self.reason(rejection))")
        }
        let settings = hub.reporter.makeSummary()?.settings ?? []
        for member in members {
            guard let id = NodeID(member.node) else { continue }
            unconnectedMilliseconds[member.node] =
                reports.unconnectedDuration(of: id, now: now)?.milliseconds
            let theirs = reports.summaries[id]?.summary.settings ?? []
            settingDifferences += member.differingSettings.map { name in
                SettingDifference(
                    setting: name, own: Self.text(of: name, settings), node: member.node,
                    theirs: Self.text(of: name, theirs))
            }
        }
    }

    /// Returns the value of the setting with this name; empty if there is none.
    private static func text(of name: String, _ settings: [SharedSetting]) -> String {
        settings.last { $0.name == name }?.text ?? ""
    }

    /// Returns the predicate about a node that cannot be a peer.
    private static func reason(_ rejection: PeerRejections.Rejection) -> String {
        switch rejection.reason {
        case .otherSecret where rejection.isDialled:
            return "has another cluster secret, or is not a Nuthatch node"
        case .otherSecret: return "has another cluster secret"
        case .otherProtocol: return "is not the peer port of a Nuthatch node"
        case .noCommonVersion(nil):
            return "supports no version of the peer protocol that this node supports"
        case .noCommonVersion(let theirs?):
            let range =
                theirs.count == 1
                ? "\(theirs.lowerBound)" : "\(theirs.lowerBound) to \(theirs.upperBound)"
            return "supports only version \(range) of the peer protocol"
        }
    }
}

extension MemberSummary {
    /// Adds the counters of `node`, its state and the digests of its sites.
    mutating func add(_ node: NodeCore) {
        let snapshot = node.snapshot()
        let statistics = StatisticsDocument(snapshot)
        counters.requests = statistics.requests.all
        counters.hits = statistics.requests.hits
        counters.cacheable = statistics.requests.cacheable
        counters.serverErrors = StatusCounts(snapshot).serverErrors
        counters.originFailures = snapshot[.originFetchesFailed]
        counters.originFetches = snapshot[.originFetchesOK] + counters.originFailures
        counters.sentBytes = snapshot[.sentBytes]
        counters.originBytes = snapshot[.originReceivedBytes]
        counters.memoryUsedBytes = snapshot[.memoryUsedBytes]
        counters.diskUsedBytes = snapshot[.diskUsedBytes]
        settings += node.settings.blockDigests
    }
}

extension NodeSettings {
    /// The digests of the blocks `sites` and `images` of the configuration file, which nodes that
    /// share responses have in common.
    fileprivate var blockDigests: [SharedSetting] {
        let images =
            ["\(self.images.defaultPolicy.digest)"]
            + self.images.originPolicies.map { "\($0.pattern) \($0.plan.digest)" }
        // Which site a request belongs to does not depend on the order of the sites.
        let sites = sitePolicies.map { "\($0.name) \($0.digest)" }.sorted()
        return [("sites", sites), ("images", images)].map { name, digests in
            let text = Array(digests.joined(separator: "\n").utf8)
            return SharedSetting(name, digest: XXH64.hash(text.span, seed: 0))
        }
    }
}

extension MemberDocument {
    /// Adds what the member has reported of itself.
    ///
    /// Name, version and URL stay as long as the member is known.
    mutating func add(
        _ entry: MemberSummaryTable.Entry, of process: ProcessID, own: MemberSummary?, now: Instant
    ) {
        addIdentity(entry.summary)
        guard let age = entry.age(of: process, now: now) else { return }
        summary = Summary(entry.summary, age: age)
        guard let own else { return }
        differingSettings = entry.summary.differences(from: own.settings, version: own.version)
    }

    /// Adds name, version and URL.
    mutating func addIdentity(_ summary: MemberSummary) {
        name = summary.name
        version = summary.version
        adminURL = summary.adminURL.isEmpty ? nil : summary.adminURL
    }
}

extension MemberDocument.Summary {
    /// Creates the document of a member's summary.
    init(_ summary: MemberSummary, age: Interval) {
        self.init()
        let counters = summary.counters
        requests = counters.requests
        hits = counters.hits
        cacheable = counters.cacheable
        serverErrors = counters.serverErrors
        originFetches = counters.originFetches
        originFailed = counters.originFailures
        sentBytes = counters.sentBytes
        originBytes = counters.originBytes
        memoryUsedBytes = counters.memoryUsedBytes
        diskUsedBytes = counters.diskUsedBytes
        state =
            switch summary.state {
            case .ready: NodeState.ready.rawValue
            case .warning: NodeState.warning.rawValue
            case .critical: NodeState.critical.rawValue
            }
        condition = summary.condition
        ageMilliseconds = age.milliseconds
    }
}
