import Admin
import Cluster
import Ground
import HTTPRules
import Origin
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
