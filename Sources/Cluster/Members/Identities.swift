import Ground

/// Newcomers with the id of a member whose earlier process may still live.
struct IdentityConflicts: Sendable {
    /// A process that says, or of which is said, that it is a known node.
    struct Claimant: Hashable, Sendable {
        /// Nil if it was only heard of.
        var connection: ConnectionID?
        var dialled: PeerAddress?
        var record: MemberRecord
    }

    /// The earlier process is asked whether it lives.
    struct Check: Hashable, Sendable {
        var claimant: Claimant
        let earlier: ProcessID
        let sequence: UInt32
        var endsAt: Instant
    }

    /// A connection with a process that has this node's own id.
    struct Duplicate: Hashable, Sendable {
        let process: ProcessID
        /// This process was here before it met the other.
        let isSenior: Bool
        var endsAt: Instant
    }

    var checks = SortedTable<NodeID, Check>()
    var duplicates = SortedTable<ConnectionID, Duplicate>()
    /// Connections on which a process was told that its node was started later than it knows, and
    /// when each is closed at the latest.
    ///
    /// What was told would be lost with one that is closed at once, if the other side had said
    /// something meanwhile. Nothing else is said on them.
    var outdatedConnections = SortedTable<ConnectionID, Instant>()
    /// How often this node has raised its incarnation above a live twin's.
    var contestCount = 0

    var nextDue: Instant? {
        (checks.values.map(\.endsAt) + duplicates.values.map(\.endsAt) + outdatedConnections.values)
            .min()
    }

    /// The connection of a newcomer or a twin, which is not in the mesh.
    func isPending(_ id: ConnectionID) -> Bool {
        duplicates[id] != nil || checks.values.contains { $0.claimant.connection == id }
    }

    /// True if the connection was a newcomer's or a twin's.
    mutating func connectionClosed(_ id: ConnectionID) -> Bool {
        outdatedConnections[id] = nil
        guard isPending(id) else { return false }
        duplicates[id] = nil
        for (node, check) in zip(checks.keys, checks.values)
        where check.claimant.connection == id {
            checks[node] = nil
        }
        return true
    }

    /// This process stood still until now: everybody has the whole time again.
    mutating func processStalled(at now: Instant, _ settings: Membership.Settings) {
        checks.updateAll { _, check in
            check.endsAt = max(check.endsAt, now + settings.probeTimeout)
        }
        duplicates.updateAll { _, twin in
            twin.endsAt = max(twin.endsAt, now + settings.duplicateTimeout)
        }
    }
}
