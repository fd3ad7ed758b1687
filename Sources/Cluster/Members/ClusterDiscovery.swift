package import Ground

/// The result so far of a starting node's search for its cluster.
///
/// Decides when the node may serve and under which rule it may form a cluster. Silence is no
/// answer: while a configured address has not replied, a cluster that the node cannot see may
/// exist, with purges that the node does not know.
package struct ClusterDiscovery: Sendable {
    /// The settings of the search.
    package struct Settings: Hashable, Sendable {
        /// True if the node is configured with addresses of other nodes.
        package var hasSeeds: Bool
        /// The number of nodes that the cluster starts with; `nil` accepts every node that replies.
        package var expectedNodeCount: Int?
        /// Maximum search time, after which the node serves all the same, but fenced.
        package var timeMax = Interval.seconds(30)
        /// Maximum time to look for further members of a cluster that was found.
        package var membersTimeMax = Interval.seconds(5)

        /// Creates the settings, with the default times.
        ///
        /// - Parameters:
        ///   - hasSeeds: True if seeds are configured.
        ///   - expects: The number of nodes that the cluster starts with, if configured.
        package init(hasSeeds: Bool, expects: Int? = nil) {
            self.hasSeeds = hasSeeds
            self.expectedNodeCount = expects
        }
    }

    /// The settings of this search.
    package let settings: Settings
    /// When the search began.
    package let startedAt: Instant
    /// The resolved addresses of the seeds; `nil` until all names were resolved.
    private var seeds: [PeerAddress]?
    /// Addresses whose dial has ended, successfully or not.
    private var triedAddresses: Set<PeerAddress> = []
    /// The node that replied to the last dial to an address.
    private var respondersByAddress: [PeerAddress: NodeID] = [:]
    /// Why an address or a name has failed last; at most ``failuresMax`` are kept.
    private var failures: [PeerAddress: String] = [:]

    private static let failuresMax = 64

    /// Creates the state of a node that begins to search.
    package init(_ settings: Settings, now: Instant) {
        self.settings = settings
        startedAt = now
    }

    /// Records that the seeds' names resolve to `addresses`.
    ///
    /// Ignored unless `isComplete`, which is false if some names could not be resolved.
    package mutating func seedsResolved(_ addresses: [PeerAddress], isComplete: Bool) {
        guard isComplete else { return }
        seeds = addresses
        let known = Set(addresses)
        failures = failures.filter { known.contains($0.key) }
    }

    /// Records why an address was not reached, or a name was not resolved.
    ///
    /// At most 64 addresses and names are kept; further ones are ignored.
    package mutating func addressFailed(_ address: PeerAddress, reason: String) {
        guard failures[address] != nil || failures.count < Self.failuresMax else { return }
        failures[address] = reason
    }

    /// Records that a dial to `address` failed; no node counts as found there any more.
    package mutating func dialFailed(_ address: PeerAddress) {
        triedAddresses.insert(address)
        respondersByAddress[address] = nil
    }

    /// Records that `node` replied to a dial to `address`, and forgets an earlier failure.
    package mutating func addressAnswered(_ address: PeerAddress, by node: NodeID) {
        triedAddresses.insert(address)
        respondersByAddress[address] = node
        failures[address] = nil
    }

    /// Records the outcome of a dial that `event` reports; ignores other events.
    package mutating func observe(_ event: MembershipEvent) {
        switch event {
        case .dialFailed(let address): dialFailed(address)
        case .connectionOpened(_, .some(let address), let member, _):
            addressAnswered(address, by: member.id)
        default: break
        }
    }

    /// Returns the rule under which the node may form a cluster, given its view of the `others`.
    ///
    /// With seeds and no expected number of nodes, the node may form one only while all names are
    /// resolved, every seed responds and no other process has this node's id.
    package func formationRule(_ others: DiscoveryView) -> ClusterFormation.Rule {
        guard settings.hasSeeds else { return .unanimous }
        if let expects = settings.expectedNodeCount { return .majority(of: expects) }
        guard let seeds, !others.hasDuplicate else { return .never }
        return unresponsive(among: seeds, others).isEmpty ? .unanimous : .never
    }

    /// Returns the `seeds` that are neither connected nor this node itself, by their addresses and
    /// by the nodes that replied there last.
    private func unresponsive(among seeds: [PeerAddress], _ others: DiscoveryView) -> [PeerAddress]
    {
        let connected = others.members.filter(\.isConnected)
        let met = Set(connected.map(\.address) + [others.address])
        let ids = Set(connected.map(\.id) + [others.own])
        return seeds.filter { seed in
            if met.contains(seed) { return false }
            guard let id = respondersByAddress[seed] else { return true }
            return !ids.contains(id)
        }
    }

    /// Returns the addresses and names that do not respond, sorted.
    ///
    /// Each comes with the reason as far as it is known, such as `b:8082: connection refused`.
    package func missingSeeds(_ others: DiscoveryView) -> [String] {
        let addresses = seeds.map { unresponsive(among: $0, others) } ?? []
        let names = failures.keys.filter { seeds?.contains($0) != true }
        return Set(addresses + names).map { "\($0): \(failures[$0] ?? "no response")" }.sorted()
    }

    /// Returns true if the node may serve, given its view of the `others`.
    ///
    /// True at once without seeds, and after ``Settings/timeMax``. Before, the node must know a
    /// voter set, which suffices after ``Settings/membersTimeMax``. Until then it must also have
    /// tried every seed address, and every live member of the first table that it received must be
    /// connected or have been dialled, so that the node knows which peers may hold a requested
    /// object. Another process with this node's id delays it too.
    ///
    /// - Parameters:
    ///   - others: The other members as the node sees them.
    ///   - hasVoterSet: True if the node knows a voter set, its own or that of others.
    ///   - now: The current time.
    /// - Returns: True if the node may serve now.
    package func isComplete(_ others: DiscoveryView, hasVoterSet: Bool, now: Instant) -> Bool {
        guard settings.hasSeeds, now < startedAt + settings.timeMax else { return true }
        guard hasVoterSet else { return false }
        guard now < startedAt + settings.membersTimeMax else { return true }
        guard let seeds, !others.hasDuplicate else { return false }
        let live = others.members.filter(\.isLive)
        let met = Set(live.filter(\.isConnected).map(\.address))
        guard seeds.allSatisfy({ triedAddresses.contains($0) || met.contains($0) }) else {
            return false
        }
        guard live.isEmpty || others.hasMemberTable else { return false }
        return live.allSatisfy { $0.isConnected || triedAddresses.contains($0.address) }
    }
}

/// A starting node's view of the other members.
package struct DiscoveryView: Hashable, Sendable {
    /// Another member.
    package struct Peer: Hashable, Sendable {
        /// The member's node id.
        package var id: NodeID
        /// The address on which the member listens for its peers.
        package var address: PeerAddress
        /// True if there is a connection with the member now.
        package var isConnected: Bool
        /// True if the member is alive or suspected.
        package var isLive: Bool

        /// Creates a member from its parts.
        package init(id: NodeID, address: PeerAddress, isConnected: Bool, isLive: Bool) {
            self.id = id
            self.address = address
            self.isConnected = isConnected
            self.isLive = isLive
        }
    }

    /// The id of the starting node.
    package var own: NodeID
    /// The address on which other nodes reach this node.
    package var address: PeerAddress
    /// All other members that the node knows of.
    package var members: [Peer]
    /// True if another process with this node's id is connected.
    package var hasDuplicate: Bool
    /// True if a member has sent its table of all members.
    package var hasMemberTable: Bool

    /// Creates a view from its parts.
    ///
    /// - Parameters:
    ///   - own: The id of the starting node.
    ///   - address: The address on which other nodes reach this node.
    ///   - members: All other known members.
    ///   - hasDuplicate: True if another process with this node's id is connected.
    ///   - hasMemberTable: True if a member has sent its table of all members.
    package init(
        own: NodeID, address: PeerAddress, members: [Peer], hasDuplicate: Bool, hasMemberTable: Bool
    ) {
        self.own = own
        self.address = address
        self.members = members
        self.hasDuplicate = hasDuplicate
        self.hasMemberTable = hasMemberTable
    }
}

extension DiscoveryView {
    /// Creates the view of a node with this membership.
    package init(_ membership: Membership) {
        let own = membership.own.member
        self.init(
            own: own.id, address: own.address,
            members: membership.records.dropFirst().map { record in
                Peer(
                    id: record.member.id, address: record.member.address,
                    isConnected: membership.connection(to: record.member.id) != nil,
                    isLive: record.state.isLive)
            }, hasDuplicate: membership.hasDuplicate, hasMemberTable: membership.hasMemberTable)
    }
}
