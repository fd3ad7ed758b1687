import Admin
import Cluster
import Ground
import Peering
import Platform

extension MemberDocument {
    /// Returns a row for each known member, this node's first, followed by the voters that this
    /// node has not met.
    ///
    /// - Parameters:
    ///   - hub: the node's membership.
    ///   - lines: the voters and their last contact.
    ///   - lags: returns the number of missing invalidations by member.
    /// - Returns: the rows; one per member.
    static func rows(
        _ hub: PeerHub, _ lines: [FenceCoordinator.MemberStatus],
        lags: ([NodeID]) -> [NodeID: UInt64]
    ) -> [MemberDocument] {
        let (view, ring) = (hub.view, hub.ringUpdater.ring)
        let counted = Dictionary(uniqueKeysWithValues: lines.map { ($0.id, $0) })
        let met = Set(view.records.map(\.member.id))
        let unknown = lines.filter { $0.isVoter && !met.contains($0.id) }.map { line in
            var row = MemberDocument()
            row.node = "\(line.id)"
            row.isVoter = true
            row.millisecondsSinceContact = line.contactAge?.milliseconds
            return row
        }
        var rows = known(view, ring, counted, weightMax: hub.ringUpdater.weightMax)
        addReports(to: &rows, view, hub.reporter)
        rows += unknown
        let ids = rows.compactMap { NodeID($0.node) }
        let lagging = lags(ids)
        for (place, id) in ids.enumerated() where ids.count == rows.count {
            // Nothing waits for a member that has left.
            let isGone = rows[place].state == "left"
            rows[place].lagRecords = isGone ? nil : lagging[id]
        }
        return rows
    }

    /// Adds the reports of the members to their `rows`, which are in the order of `view`, and this
    /// node's own to its row.
    private static func addReports(
        to rows: inout [MemberDocument], _ view: MemberView, _ reporter: PeerReporter
    ) {
        let (own, reports, now) = (reporter.makeSummary(), reporter.reports, SystemClock.now())
        for (place, record) in view.records.enumerated() {
            if rows[place].isSelf, let own {
                rows[place].addIdentity(own)
                rows[place].summary = Summary(own, age: .zero)
            } else if let entry = reports.summaries[record.member.id] {
                rows[place].add(entry, of: record.member.process, own: own, now: now)
            }
        }
        // Nodes without a name of their own have that of their machine.
        let names = Dictionary(grouping: rows.map(\.name), by: { $0 }).mapValues(\.count)
        for place in rows.indices where names[rows[place].name, default: 0] > 1 {
            guard !rows[place].name.isEmpty else { continue }
            rows[place].name += " \(rows[place].address)"
        }
    }

    /// Returns the rows of the members that this node has met, itself included.
    private static func known(
        _ view: MemberView, _ ring: Ring, _ counted: [NodeID: FenceCoordinator.MemberStatus],
        weightMax: UInt16
    ) -> [MemberDocument] {
        view.records.map { record in
            let member = record.member
            var row = MemberDocument()
            row.node = "\(member.id)"
            row.process = "\(member.process)"
            row.address = "\(member.address)"
            row.state =
                switch record.state {
                case .alive: "alive"
                case .suspected: "suspected"
                case .dead: "dead"
                case .left: "left"
                }
            row.isVoter = counted[member.id]?.isVoter ?? false
            row.millisecondsSinceContact = counted[member.id]?.contactAge?.milliseconds
            row.isSelf = member.id == view.own.member.id
            row.isConnected = row.isSelf || view.connections[member.id] != nil
            row.isCaughtUp = member.role.contains(.isCaughtUp)
            row.isDraining = member.role.contains(.isDraining)
            row.weight = Int(member.weight)
            row.effectiveWeight = Int(min(member.weight, weightMax))
            row.primaryShare = ring.share(of: member.id)
            return row
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

extension ClusterFacts {
    /// Creates the facts that `node` knows of its cluster, which has the given `members`; none for
    /// a node that is in no cluster.
    init(of node: NodeCore, members: [MemberDocument], now: Instant) {
        self.init()
        guard let hub = node.hub else { return }
        let reports = hub.reporter.reports
        self.members = members
        rejectedPeers = reports.rejections.current(now: now).map { rejection in
            let node = rejection.isDialled ? rejection.address : "A node at \(rejection.address)"
            return RejectedPeer(
                address: rejection.address, summary: "\(node) \(Self.reason(rejection)).")
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
