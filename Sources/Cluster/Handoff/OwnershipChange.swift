package import Ground

/// A change of owners, which determines to whom a node offers its entries (Design, "Owners and the
/// path of a miss").
///
/// An owner has an entry if it owned it on every ring since the last one by which everything was
/// offered. An owner that was absent from one of these may have missed entries meanwhile.
package struct OwnershipChange: Sendable {
    /// The ring by which everything was offered, and all rings since, without the current one.
    package private(set) var previousRings: [Ring]
    /// The current ring.
    package private(set) var current: Ring
    /// The number of owners of a key that store it on disk.
    package let replicas: Int
    /// The node that offers its entries; it offers nothing to itself.
    package let sender: NodeID

    /// The maximum number of remembered rings; beyond it all owners are offered everything.
    package static let ringsMax = 8

    /// Creates a settled state: everything was offered by `ring`.
    package init(settled ring: Ring, replicas: Int, sender: NodeID) {
        previousRings = [ring]
        current = ring
        self.replicas = replicas
        self.sender = sender
    }

    /// True if all remembered rings equal the current one, so that no entry has a new owner.
    package var isSettled: Bool { previousRings.allSatisfy { $0 == current } }

    /// Sets the current ring.
    package mutating func change(to ring: Ring) {
        if previousRings.last != current { previousRings.append(current) }
        current = ring
        if previousRings.count > Self.ringsMax { previousRings = [Ring(members: [])] }
    }

    /// Records that `node` has missed offers and must be offered all that it owns.
    package mutating func markMissed(_ node: NodeID) {
        previousRings.append(current.removing(node))
    }

    /// Records that everything was offered by the current ring.
    package mutating func settle() {
        previousRings = [current]
    }

    /// Returns the owners of an entry that must be offered it, in order of preference: those that
    /// did not own it on every remembered ring, except the sender.
    package func newOwners(of digest: EntryDigest) -> [NodeID] {
        current.owners(of: digest).prefix(replicas).filter { owner in
            owner != sender
                && !previousRings.allSatisfy {
                    $0.owners(of: digest).prefix(replicas).contains(owner)
                }
        }
    }
}
