import Admin
import Cluster
import Ground
import HTTPRules
import NIOCore
import Peering
import Platform
import Store
import Telemetry
import Tiers
import Wire

extension NodeCore: PeerService {
    var sharingRule: SharingRule {
        let settings = settings
        var (named, others) = ([UInt16: Bool](), false)
        for policy in settings.sitePolicies {
            guard !policy.isForEveryHost else {
                others = policy.settings.usesPeers
                continue
            }
            let share = DiskShareID.number(ofHost: Array(policy.name.utf8).span)
            named[share] = policy.settings.usesPeers
        }
        return SharingRule(images: settings.images.areShared, named: named, others: others) {
            settings.sharesWithPeers($0)
        }
    }

    func makeQueryHandler(
        _ query: PeerQuery, on stream: UInt32, of connection: PeerConnection
    ) -> (any PeerQueryHandler)? {
        guard let context = connection.loop.flatMap({ context(of: $0) }) else { return nil }
        return PeerRequestHandler(query, on: stream, of: connection, in: context)
    }

    func complete(_ summary: inout MemberSummary) {
        // A node that has failed to start or has stopped has no log of purges.
        if purgesIfOpen != nil { summary.add(self) }
    }

    func touchesReceived(_ touches: [AgedTouch]) {
        let second = clock.second(SystemClock.now())
        counters.add(.touchesReceived, touches.count)
        touch(touches.map { $0.touch(now: second) })
    }

    func startTransfer(
        of offer: PeerOffer, from peer: NodeID, on connection: PeerConnection,
        completion: @escaping @Sendable (InboundOffers.TransferOutcome) -> Void
    ) -> (any Sendable & AnyObject)? {
        guard let context = connection.loop.flatMap({ context(of: $0) }) else { return nil }
        let transfer = HandoffTransfer(
            offer, from: peer, on: connection, in: context, done: completion)
        context.loop.execute { transfer.start() }
        return transfer
    }
}

extension MemoryEntry {
    /// True for an image, whose key is its URL; keys of sites begin with a slash.
    var isImage: Bool { keyAndHead.first != UInt8(ascii: "/") }
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
        adopt(node.monitor.withState { $0.latest.conditions })
    }

    /// Adopts the worst of the node's conditions, except those that other members report: two
    /// nodes would keep each other critical.
    private mutating func adopt(_ conditions: [Condition]) {
        let own = ConditionsDocument(
            conditions.filter { $0.name != Condition.Name.memberFailing.rawValue })
        state =
            switch NodeState(rawValue: own.state) {
            case .ready: .ready
            case .critical: .critical
            case .warning, nil: .warning
            }
        condition = own.conditions.first?.summary ?? ""
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
