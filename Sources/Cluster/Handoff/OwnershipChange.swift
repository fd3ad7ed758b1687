package import Ground

/// A change of owners: who is to be offered what a node holds (DESIGN.md §7 "Owners and the path of
/// a miss").
///
/// An owner has what is held if it was one on every ring since the last one by which everything was
/// offered; who was away on one of them may have missed what came meanwhile.
package struct OwnershipChange: Sendable {
    /// The ring by which everything held was offered, and all since.
    package private(set) var previousRings: [Ring]
    package private(set) var current: Ring
    /// How many of a key's owners keep it on disk.
    package let replicas: Int
    /// The node that holds, which offers nothing to itself.
    package let sender: NodeID

    /// The most rings that are remembered, beyond which everybody is offered everything.
    package static let ringsMax = 8

    /// Nothing has moved: by this ring everything held was offered.
    package init(settled ring: Ring, replicas: Int, sender: NodeID) {
        previousRings = [ring]
        current = ring
        self.replicas = replicas
        self.sender = sender
    }

    /// True if nobody has become an owner of anything.
    package var isSettled: Bool { previousRings.allSatisfy { $0 == current } }

    /// Others own things from now on.
    package mutating func change(to ring: Ring) {
        if previousRings.last != current { previousRings.append(current) }
        current = ring
        if previousRings.count > Self.ringsMax { previousRings = [Ring(members: [])] }
    }

    /// A node has not been offered what it was to be, and is to be offered all that it owns.
    package mutating func markMissed(_ node: NodeID) {
        previousRings.append(current.removing(node))
    }

    /// Everything held was offered by the ring that holds now.
    package mutating func settle() {
        previousRings = [current]
    }

    /// Those that have become owners of an entry, in order of preference.
    package func newOwners(of digest: EntryDigest) -> [NodeID] {
        current.owners(of: digest).prefix(replicas).filter { owner in
            owner != sender
                && !previousRings.allSatisfy {
                    $0.owners(of: digest).prefix(replicas).contains(owner)
                }
        }
    }
}
