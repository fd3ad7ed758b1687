package import Cluster
package import Ground
import Synchronization

/// An immutable snapshot of the members and their connections.
package struct MemberView: Sendable {
    /// The records of all known members: this node's first, then the others by id.
    package let records: [MemberRecord]
    /// The connections in use by member; members without one are absent.
    package let connections: [NodeID: PeerConnection]
    /// The connected members that are alive and not suspected.
    private let reachable: Set<NodeID>
    /// The other reachable members that are draining, by id.
    package let draining: [NodeID]

    /// Creates a snapshot of the membership.
    init(_ membership: Membership, _ connections: [PeerConnectionID: PeerConnection]) {
        records = membership.records
        var found: [NodeID: PeerConnection] = [:]
        for id in membership.connectedMembers {
            found[id] = membership.connection(to: id).flatMap { connections[$0] }
        }
        self.connections = found
        let alive = records.filter { $0.state == .alive }.map(\.member.id)
        reachable = Set(alive.filter { found[$0] != nil })
        draining = records.dropFirst().filter { record in
            record.state == .alive && record.member.role.contains(.isDraining)
                && found[record.member.id] != nil
        }.map(\.member.id)
    }

    /// This node's record.
    package var own: MemberRecord { records[0] }

    /// Returns true if a query to another member is likely to get a reply: it is alive, connected
    /// and not unresponsive.
    package func isReachable(_ id: NodeID) -> Bool {
        reachable.contains(id) && connections[id]?.isUnresponsive.load(ordering: .relaxed) == false
    }
}

extension ReplicationMember.Presence {
    /// Creates the presence for a member's state; a suspected member counts as live.
    init(_ state: MemberRecord.State) {
        switch state {
        case .alive, .suspected: self = .live
        case .dead: self = .dead
        case .left: self = .left
        }
    }
}
