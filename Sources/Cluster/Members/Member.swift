package import Ground

/// What a node says of itself, and everybody repeats.
package struct Member: Hashable, Sendable {
    package var id: NodeID
    /// The run of the node that this is about.
    package var process: ProcessID
    /// Where its peers reach it: an address or a name, with a port.
    package var address: PeerAddress
    /// Its share of the ring beside the others'; constant for a process.
    package var weight: UInt16
    /// The oldest and the newest version of the peer protocol that it speaks.
    package var versions: ClosedRange<UInt16>
    package var role: Role

    /// What a node may be asked for (DESIGN.md §7 "Owners and the path of a miss").
    package struct Role: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// It has caught up with the invalidations, and may own.
        package static let isCaughtUp = Role(rawValue: 1 << 0)
        /// It hands on what it holds, to leave; it owns nothing any more.
        package static let isDraining = Role(rawValue: 1 << 1)
    }

    package init(
        id: NodeID, process: ProcessID, address: PeerAddress, weight: UInt16,
        versions: ClosedRange<UInt16>, role: Role
    ) {
        precondition(weight > 0, "a member without weight")
        self.id = id
        self.process = process
        self.address = address
        self.weight = weight
        self.versions = versions
        self.role = role
    }

    /// The weight of a node that was told none.
    package static let defaultWeight: UInt16 = 100
}
