package import Ground

/// The facts about a node that its conditions follow from.
package struct NodeFacts: Sendable {
    /// The traffic until now.
    package var history = TrafficHistory()
    /// The counters now.
    package var now: TrafficSample
    /// The node's readiness.
    package var readiness = Readiness.ready
    /// The time since the fence closed; `nil` if it is open.
    package var fenced: Interval?
    /// The seeds that do not reply, with the reason; `nil` unless the node looks for its cluster.
    package var missingSeeds: [String]?
    /// What the node knows of its cluster.
    package var cluster = ClusterFacts()
    /// The origins.
    package var origins: [Origin] = []
    /// The URL of the origin of each site, by the name of the site.
    package var siteOrigins: [String: String] = [:]
    /// The certificates with their validity.
    package var certificates: [Certificate] = []
    /// The wall clock.
    package var wall = WallTime(seconds: 0)
    /// The fault of the disk tier; `nil` without one, and without a disk tier.
    package var diskFault: DiskFault?

    /// An origin.
    package struct Origin: Sendable {
        /// The origin as operators see it.
        package var document: OriginDocument
        /// True if the operator has named the origin, false if clients name it.
        package var isOperatorConfigured: Bool
        /// The requests of the last minute that it should have served.
        package var all: Int
        /// Those among ``all`` that failed, were refused, or got a 5xx.
        package var bad: Int

        /// Creates an origin from its parts.
        package init(
            _ document: OriginDocument, isOperatorConfigured: Bool, all: Int, bad: Int
        ) {
            self.document = document
            self.isOperatorConfigured = isOperatorConfigured
            self.all = all
            self.bad = bad
        }
    }

    /// A certificate that the node presents or trusts.
    package struct Certificate: Sendable {
        /// The name of the file.
        package var file: String
        /// The names in the certificate.
        package var names: [String]
        /// The beginning of the validity.
        package var notBefore: WallTime
        /// The end of the validity.
        package var notAfter: WallTime

        /// Creates a certificate from its parts.
        package init(file: String, names: [String], notBefore: WallTime, notAfter: WallTime) {
            self.file = file
            self.names = names
            self.notBefore = notBefore
            self.notAfter = notAfter
        }
    }

    /// A fault of the disk tier.
    package struct DiskFault: Sendable {
        /// The failed call and its reason; empty if the tier has not started yet.
        package var why: String
        /// True if the file system has no space, or is read-only.
        package var refusesWrites: Bool

        /// Creates a fault from its parts.
        package init(why: String, refusesWrites: Bool) {
            self.why = why
            self.refusesWrites = refusesWrites
        }
    }

    /// Creates the facts of a node without faults, with its counters now.
    package init(now: TrafficSample) {
        self.now = now
    }
}

/// What a node knows of its cluster, from which its conditions follow.
package struct ClusterFacts: Sendable {
    /// The members, this node first.
    package var members: [MemberDocument] = []
    /// The time in milliseconds for which live members have had no connection with this node, by
    /// node id.
    package var unconnectedMilliseconds: [String: Int64] = [:]
    /// The nodes that cannot be peers.
    package var rejectedPeers: [RejectedPeer] = []
    /// The values of settings on members where they differ from those of this node.
    package var settingDifferences: [SettingDifference] = []

    /// Creates the facts of a node that is in no cluster.
    package init() {}

    /// A node that responds, or has dialled, and cannot be a peer.
    package struct RejectedPeer: Equatable, Sendable {
        /// Its address; without a port if it has dialled.
        package var address: String
        /// The sentence about it.
        package var summary: String

        /// Creates a rejected peer from its parts.
        package init(address: String, summary: String) {
            self.address = address
            self.summary = summary
        }
    }

    /// A setting whose value on a member differs from that of this node.
    package struct SettingDifference: Equatable, Sendable {
        /// The name of the setting, or of a block of the configuration file.
        package var setting: String
        /// The value on this node; empty for a block.
        package var own: String
        /// The member's id.
        package var node: String
        /// The value on the member; empty for a block.
        package var theirs: String

        /// Creates a difference from its parts.
        package init(setting: String, own: String, node: String, theirs: String) {
            self.setting = setting
            self.own = own
            self.node = node
            self.theirs = theirs
        }
    }

    /// The time in milliseconds after which a live member should be connected.
    package static let connectMilliseconds: Int64 = 15_000
}

// MARK: Conditions

extension ClusterFacts {
    /// The conditions of the cluster, as this node sees it.
    package var conditions: [Condition] {
        failingMembers + missingMembers + unreachableMembers + rejections + differences + versions
    }

    /// The members other than this node.
    private var others: some Sequence<MemberDocument> { members.lazy.filter { !$0.isSelf } }

    /// The members that report a critical condition.
    private var failingMembers: [Condition] {
        others.compactMap { member in
            guard let summary = member.summary, summary.state == NodeState.critical.rawValue else {
                return nil
            }
            let cause = summary.condition.isEmpty ? "." : ": \(summary.condition)"
            return Condition(
                .memberFailing, .critical, subject: member.title,
                "\(member.title) reports a critical condition\(cause)",
                advice: "Open its dashboard, or run nuthatch status --node on it.")
        }
    }

    /// The members that do not respond.
    private var missingMembers: [Condition] {
        others.filter { member in
            switch member.state {
            case "suspected", "dead": true
            case "unknown": member.isVoter
            default: false
            }
        }.map { member in
            let what =
                switch member.state {
                case "suspected": "does not respond."
                case "dead": "is dead: no member gets a response from it."
                default: "is a voter that this node has not met since its start."
                }
            return Condition(
                .memberMissing, .warning, subject: member.title,
                "\(member.titleWithAddress) \(what)",
                advice: "Restart it or replace it. If it will not return: nuthatch members forget "
                    + member.node,
                alert: "NuthatchMembersMissing")
        }
    }

    /// The live members without a connection.
    private var unreachableMembers: [Condition] {
        others.compactMap { member in
            guard let time = unconnectedMilliseconds[member.node], member.state == "alive",
                time >= Self.connectMilliseconds
            else { return nil }
            return Condition(
                .memberUnreachable, .warning, subject: member.title,
                "\(member.titleWithAddress) is alive, but has had no connection with this node for "
                    + "\(time / 1_000) s.",
                advice: "Every node must reach every other one at its peer-advertise address: "
                    + "check routes and firewalls between the two.",
                alert: "NuthatchClusterSplit")
        }
    }

    /// The nodes that cannot be peers.
    private var rejections: [Condition] {
        rejectedPeers.map { peer in
            Condition(
                .peerRejected, .warning, subject: peer.address, peer.summary,
                advice: "Give all nodes the same cluster-secret-file, and versions that work "
                    + "together; take an address that is no node out of join.")
        }
    }

    /// The settings that differ, each with the members where they do.
    private var differences: [Condition] {
        var names: [String] = []
        for difference in settingDifferences where !names.contains(difference.setting) {
            names.append(difference.setting)
        }
        return names.map { name in
            let same = settingDifferences.filter { $0.setting == name }
            let theirs = same.map { difference in
                let title = title(of: difference.node)
                return difference.theirs.isEmpty ? title : "\(difference.theirs) on \(title)"
            }.joined(separator: ", ")
            let own = same[0].own
            return Condition(
                .settingsDiffer, .warning, subject: name,
                own.isEmpty
                    ? "The settings of \(name) are not those of \(theirs)."
                    : "\(name) is \(own) on this node, and \(theirs).",
                advice: "It must be the same on all nodes: give them one configuration file, then "
                    + "reload or restart those that differ.")
        }
    }

    /// The members that run another version.
    private var versions: [Condition] {
        let own = members.first { $0.isSelf }?.version ?? ""
        let differing = others.filter { member in
            member.summary != nil && !member.version.isEmpty && member.version != own
        }
        guard !own.isEmpty, !differing.isEmpty else { return [] }
        let list = differing.map { "\($0.title) runs \($0.version)" }.joined(separator: ", ")
        return [
            Condition(
                .versionDiffers, .warning, "This node runs \(own); \(list).",
                advice: "Finish the upgrade: neighbouring versions work together, others need not.")
        ]
    }

    /// Returns the title of the member with this id.
    private func title(of node: String) -> String {
        members.first { $0.node == node }?.title ?? node
    }
}

extension MemberDocument {
    /// The member's name; its address, or without one its id, while the name is unknown.
    package var title: String { name.isEmpty ? (address.isEmpty ? node : address) : name }

    /// The title, with the address unless that is the title.
    fileprivate var titleWithAddress: String {
        address.isEmpty || title.contains(address) ? title : "\(title) (\(address))"
    }
}
