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
            var row = MemberDocument()
            row.node = "\(line.id)"
            row.isVoter = true
            row.millisecondsSinceContact = line.contactAge?.milliseconds
            return row
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
