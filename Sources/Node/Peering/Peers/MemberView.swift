import Admin
import Cluster
import Ground
import Synchronization

/// Who was believed to be here at one moment.
struct MemberView: Sendable {
    /// This node's record first, then by id.
    let records: [MemberRecord]
    /// With whom there is a connection.
    let connections: [NodeID: PeerConnection]
    /// Those of them that nobody suspects.
    private let reachable: Set<NodeID>
    /// Others within reach that hand over what they hold, to leave; by id.
    let draining: [NodeID]

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

    var own: MemberRecord { records[0] }

    /// True if it makes sense to ask a member for something.
    func isReachable(_ id: NodeID) -> Bool {
        reachable.contains(id) && connections[id]?.isUnresponsive.load(ordering: .relaxed) == false
    }
}

extension MemberDocument {
    /// Everybody whom the node of `hub` knows, itself first, then those who are counted and whom it
    /// has not met; `lines` say who is counted, `lags` who lacks what.
    static func rows(
        _ hub: PeerHub, _ lines: [FenceCoordinator.MemberStatus],
        lags: ([NodeID]) -> [NodeID: UInt64]
    ) -> [MemberDocument] {
        let (view, ring) = (hub.view, hub.ringUpdater.ring)
        let counted = Dictionary(uniqueKeysWithValues: lines.map { ($0.id, $0) })
        let met = Set(view.records.map(\.member.id))
        let unknown = lines.filter { $0.isVoter && !met.contains($0.id) }.map { line in
            MemberDocument(
                node: "\(line.id)", process: "", address: "", state: "unknown", isCounted: true,
                contactMilliseconds: line.contactAge?.milliseconds, weight: 0, isCaughtUp: false,
                isDraining: false, isSelf: false, isConnected: false, ringShare: 0)
        }
        var rows = known(view, ring, counted, weightMax: hub.ringUpdater.weightMax) + unknown
        let ids = rows.compactMap { NodeID($0.node) }
        let lagging = lags(ids)
        for (place, id) in ids.enumerated() where ids.count == rows.count {
            // Whoever has gone is waited for by nobody.
            let isGone = rows[place].state == "left"
            rows[place].lagRecords = isGone ? nil : lagging[id]
        }
        return rows
    }

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
                state: state, isCounted: counted[member.id]?.isVoter ?? false,
                contactMilliseconds: counted[member.id]?.contactAge?.milliseconds,
                weight: Int(member.weight), countedWeight: Int(min(member.weight, weightMax)),
                isCaughtUp: member.role.contains(.isCaughtUp),
                isDraining: member.role.contains(.isDraining), isSelf: isSelf,
                isConnected: isSelf || view.connections[member.id] != nil,
                ringShare: ring.share(of: member.id))
        }
    }
}

extension ReplicationMember.Presence {
    init(_ state: MemberRecord.State) {
        switch state {
        case .alive, .suspected: self = .live
        case .dead: self = .dead
        case .left: self = .left
        }
    }
}
