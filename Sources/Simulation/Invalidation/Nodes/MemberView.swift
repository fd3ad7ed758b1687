import Cluster
import Ground
import Serving

/// The facts about a node that membership spreads.
struct SimulatedMember: Sendable {
    /// The present id, replaced when the directory is lost.
    var id: NodeID
    /// The process of the last start.
    var process = ProcessID(high: 0, low: 0)
    var wasStarted = false
    /// True after the node has announced its leave, until its next start.
    var hasLeft = false
    /// True if the node owns no keys, since it is about to leave.
    var isDraining = false
}

/// The members as one node sees them, without a simulation of the membership protocol.
struct MemberView: Sendable {
    /// The index of the node that has this view.
    private let index: Int
    /// The nodes that this one sees.
    private var isSeen: [Bool]
    /// Since when each node is no longer seen.
    private(set) var unseenSince: [Instant?]

    /// Creates the view of a node that sees no other of `count`.
    init(of index: Int, nodes count: Int) {
        self.index = index
        isSeen = Array(repeating: false, count: count)
        unseenSince = Array(repeating: nil, count: count)
    }

    /// True if the node sees all others.
    var isComplete: Bool { isSeen.indices.allSatisfy { $0 == index || isSeen[$0] } }

    /// Marks a node as unseen, because it has another id from now on.
    mutating func forget(_ other: Int) { isSeen[other] = false }

    /// Updates what the node sees.
    ///
    /// A node is seen over a connection, or over one that is connected with both, and for a while
    /// after that has broken.
    ///
    /// - Returns: All members, and whether some are newly seen; `nil` if nothing has changed.
    mutating func update(
        _ world: SimulatedWorld
    ) -> (members: [ReplicationMember], hasNew: Bool)? {
        var members: [ReplicationMember] = []
        var (isChanged, hasNew) = (false, false)
        for (other, member) in startedOthers(world) {
            let brokenAt = world.network.link(index, other).brokenAt
            let isRecent = world.now - brokenAt < .milliseconds(1_500)
            let isSeen =
                world.network.areNeighbours(index, other)
                || (self.isSeen[other] && isRecent && !member.hasLeft)
            if isSeen != self.isSeen[other] {
                self.isSeen[other] = isSeen
                unseenSince[other] = isSeen ? nil : world.now
                isChanged = true
                hasNew = hasNew || isSeen
            }
            members.append(
                ReplicationMember(
                    member.id, member.process, isSeen ? .live : member.hasLeft ? .left : .dead))
        }
        return isChanged ? (members, hasNew) : nil
    }

    /// Returns the view by which the node searches for its cluster.
    func discoveryView(_ world: SimulatedWorld) -> DiscoveryView {
        let members = startedOthers(world).map { other, member in
            let isConnected = world.network.areConnected(index, other)
            return DiscoveryView.Peer(
                id: member.id, address: .simulated(other), isConnected: isConnected,
                isLive: isConnected || isSeen[other])
        }
        return DiscoveryView(
            own: world.members[index].id, address: .simulated(index), members: members,
            hasDuplicate: false, hasMemberTable: members.contains(where: \.isConnected))
    }

    /// Returns the owners of the key in the node's view, in order of preference.
    func owners(of key: Int, _ world: SimulatedWorld) -> [Int] {
        world.preference[key].filter { other in
            guard other < isSeen.count, !world.members[other].isDraining else { return false }
            return other == index || isSeen[other]
        }
    }

    /// Returns the owners of the key for a lookup, with their reachability.
    func lookupPeers(for key: Int, _ world: SimulatedWorld) -> Lookup.Peers {
        let candidates = owners(of: key, world).map { other in
            OwnerSearch.Candidate(
                world.members[other].id,
                isReachable: other == index || world.network.areConnected(index, other))
        }
        return Lookup.Peers(me: world.members[index].id, preference: candidates, leaving: [])
    }

    /// Returns the other nodes that were started at least once, with their indices.
    private func startedOthers(_ world: SimulatedWorld) -> [(Int, SimulatedMember)] {
        zip(world.members.indices, world.members).filter { $0 != index && $1.wasStarted }
    }
}

extension PeerAddress {
    /// Returns the address of a simulated node.
    static func simulated(_ index: Int) -> PeerAddress { PeerAddress(host: "n\(index)", port: 1) }
}
