package import Ground

/// When a node that starts has found its cluster, and may serve.
///
/// It has when it has tried every address that the names of its seeds stand for, and is connected
/// with everybody whom the first of them told it of, as far as they can be reached: then it knows
/// who may hold what it is asked for. A name that cannot be looked up says nothing of who is there.
/// After ``timeMax`` it serves with what it has found.
package struct JoinWatch: Sendable {
    /// How long a node looks before it serves all the same.
    package static let timeMax = Interval.seconds(5)

    /// When the node serves in any case.
    package let endsAt: Instant
    private let hasSeeds: Bool
    /// What the names of the seeds stand for; nil until all of them were looked up.
    private var seeds: [PeerAddress]?
    /// Dials to these have come to an end, be it a connection.
    private var tried: Set<PeerAddress> = []

    /// A node that begins to look for others, if it was told where.
    package init(hasSeeds: Bool, now: Instant) {
        self.hasSeeds = hasSeeds
        endsAt = now + Self.timeMax
    }

    /// The names of the seeds stand for `addresses`; not `isWhole` if some could not be looked up.
    package mutating func lookedUp(_ addresses: [PeerAddress], isWhole: Bool) {
        if isWhole { seeds = addresses }
    }

    /// Takes note of what the membership is told.
    package mutating func follow(_ event: MembershipEvent) {
        switch event {
        case .dialFailed(let address), .connectionOpened(_, .some(let address), _, _):
            tried.insert(address)
        default: break
        }
    }

    /// True if the node may serve, as `membership` stands.
    package func isOver(_ membership: Membership, now: Instant) -> Bool {
        guard hasSeeds, now < endsAt else { return true }
        guard let seeds, !membership.isContested else { return false }
        let others = membership.records.dropFirst().filter { $0.state.isLive }
        let isConnected = { (record: MemberRecord) in
            membership.connection(to: record.member.id) != nil
        }
        let met = Set(others.filter(isConnected).map(\.member.address))
        guard seeds.allSatisfy({ tried.contains($0) || met.contains($0) }) else { return false }
        guard others.isEmpty || membership.hasTable else { return false }
        return others.allSatisfy { isConnected($0) || tried.contains($0.member.address) }
    }
}
