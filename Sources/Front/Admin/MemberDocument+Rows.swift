import Admin
import Cluster
import Ground
import Peering

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
            MemberDocument(
                node: "\(line.id)", process: "", address: "", state: "unknown", isVoter: true,
                millisecondsSinceContact: line.contactAge?.milliseconds, weight: 0,
                isCaughtUp: false,
                isDraining: false, isSelf: false, isConnected: false, primaryShare: 0)
        }
        var rows = known(view, ring, counted, weightMax: hub.ringUpdater.weightMax) + unknown
        let ids = rows.compactMap { NodeID($0.node) }
        let lagging = lags(ids)
        for (place, id) in ids.enumerated() where ids.count == rows.count {
            // Nothing waits for a member that has left.
            let isGone = rows[place].state == "left"
            rows[place].lagRecords = isGone ? nil : lagging[id]
        }
        return rows
    }

    /// Returns the rows of the members that this node has met.
    private static func known(
        _ view: MemberView, _ ring: Ring, _ counted: [NodeID: FenceCoordinator.MemberStatus],
        weightMax: UInt16
    ) -> [MemberDocument] {
        view.records.map { record in
            let (member, isSelf) = (record.member, record.member.id == view.own.member.id)
            let state =
                switch record.state {
                case .alive: "alive"
                case .suspected: "suspected"
                case .dead: "dead"
                case .left: "left"
                }
            return MemberDocument(
                node: "\(member.id)", process: "\(member.process)", address: "\(member.address)",
                state: state, isVoter: counted[member.id]?.isVoter ?? false,
                millisecondsSinceContact: counted[member.id]?.contactAge?.milliseconds,
                weight: Int(member.weight), effectiveWeight: Int(min(member.weight, weightMax)),
                isCaughtUp: member.role.contains(.isCaughtUp),
                isDraining: member.role.contains(.isDraining), isSelf: isSelf,
                isConnected: isSelf || view.connections[member.id] != nil,
                primaryShare: ring.share(of: member.id))
        }
    }
}
