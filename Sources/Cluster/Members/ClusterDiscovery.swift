package import Ground

/// What a node that starts has found of its cluster: when it may serve, and when a cluster may be
/// opened.
///
/// Silence is no answer: as long as an address that it was told of says nothing, there may be a
/// cluster that the node cannot see, with purges that it does not know.
package struct ClusterDiscovery: Sendable {
    package struct Settings: Hashable, Sendable {
        /// The node was told where others are.
        package var hasSeeds: Bool
        /// How many nodes the cluster is to begin with; nil for as many as answer.
        package var expectedNodeCount: Int?
        /// How long the node looks for a cluster before it serves all the same, and is fenced.
        package var timeMax = Interval.seconds(30)
        /// How long it looks for further members of one that it has found.
        package var membersTimeMax = Interval.seconds(5)

        package init(hasSeeds: Bool, expects: Int? = nil) {
            self.hasSeeds = hasSeeds
            self.expectedNodeCount = expects
        }
    }

    package let settings: Settings
    package let startedAt: Instant
    /// What the names of the seeds stand for; nil until all of them were looked up.
    private var seeds: [PeerAddress]?
    /// Dials to these have come to an end, be it a connection.
    private var triedAddresses: Set<PeerAddress> = []
    /// Who was there when an address was dialled last.
    private var respondersByAddress: [PeerAddress: NodeID] = [:]
    /// Why nothing came of an address or a name.
    private var failures: [PeerAddress: String] = [:]

    private static let failuresMax = 64

    /// A node that begins to look for others.
    package init(_ settings: Settings, now: Instant) {
        self.settings = settings
        startedAt = now
    }

    /// The names of the seeds stand for `addresses`; not `isWhole` if some could not be looked up.
    package mutating func seedsResolved(_ addresses: [PeerAddress], isComplete: Bool) {
        guard isComplete else { return }
        seeds = addresses
        let known = Set(addresses)
        failures = failures.filter { known.contains($0.key) }
    }

    /// Nothing came of an address, or of a name, for the reason `why`.
    package mutating func addressFailed(_ address: PeerAddress, reason: String) {
        guard failures[address] != nil || failures.count < Self.failuresMax else { return }
        failures[address] = reason
    }

    /// Nobody answered a dial to `address`.
    package mutating func dialFailed(_ address: PeerAddress) {
        triedAddresses.insert(address)
        respondersByAddress[address] = nil
    }

    /// `node` answered a dial to `address`.
    package mutating func addressAnswered(_ address: PeerAddress, by node: NodeID) {
        triedAddresses.insert(address)
        respondersByAddress[address] = node
        failures[address] = nil
    }

    /// Takes note of what the membership is told.
    package mutating func observe(_ event: MembershipEvent) {
        switch event {
        case .dialFailed(let address): dialFailed(address)
        case .connectionOpened(_, .some(let address), let member, _):
            addressAnswered(address, by: member.id)
        default: break
        }
    }

    /// Under what the node may open a cluster, as it sees the `others`.
    package func rule(_ others: DiscoveryView) -> ClusterFormation.Rule {
        guard settings.hasSeeds else { return .unanimous }
        if let expects = settings.expectedNodeCount { return .majority(of: expects) }
        guard let seeds, !others.hasDuplicate else { return .never }
        return unresponsive(among: seeds, others).isEmpty ? .unanimous : .never
    }

    /// Those that do not answer now.
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

    /// Which addresses and names say nothing, and why as far as that is known; like
    /// `b:8082: connection refused`.
    package func missingSeeds(_ others: DiscoveryView) -> [String] {
        let places = seeds.map { unresponsive(among: $0, others) } ?? []
        let names = failures.keys.filter { seeds?.contains($0) != true }
        return Set(places + names).map { "\($0): \(failures[$0] ?? "no answer")" }.sorted()
    }

    /// True if the node may serve, as it sees the `others`; `isCounting`: it follows a count, its
    /// own or that of others.
    ///
    /// It has tried every address that the names of its seeds stand for, and is connected with
    /// everybody whom the first of them told it of, as far as they can be reached: then it knows
    /// who may hold what it is asked for.
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

/// What a node that starts sees of others.
package struct DiscoveryView: Hashable, Sendable {
    package struct Peer: Hashable, Sendable {
        package var id: NodeID
        package var address: PeerAddress
        /// There is a connection with it now.
        package var isConnected: Bool
        /// It is alive, or suspected not to be.
        package var isLive: Bool

        package init(id: NodeID, address: PeerAddress, isConnected: Bool, isLive: Bool) {
            self.id = id
            self.address = address
            self.isConnected = isConnected
            self.isLive = isLive
        }
    }

    package var own: NodeID
    /// Where others reach this node.
    package var address: PeerAddress
    /// All others that it has heard of.
    package var members: [Peer]
    /// Another process with its id is there.
    package var hasDuplicate: Bool
    /// Somebody has told it of all members.
    package var hasMemberTable: Bool

    package init(
        own: NodeID, address: PeerAddress, members: [Peer], isContested: Bool, hasTable: Bool
    ) {
        self.own = own
        self.address = address
        self.members = members
        self.hasDuplicate = isContested
        self.hasMemberTable = hasTable
    }
}

extension Membership {
    /// For a ``ClusterDiscovery``.
    package var discoveryView: DiscoveryView {
        DiscoveryView(
            own: own.member.id, address: own.member.address,
            members: records.dropFirst().map { record in
                DiscoveryView.Peer(
                    id: record.member.id, address: record.member.address,
                    isConnected: connection(to: record.member.id) != nil,
                    isLive: record.state.isLive)
            }, isContested: hasDuplicate, hasTable: hasMemberTable)
    }
}
