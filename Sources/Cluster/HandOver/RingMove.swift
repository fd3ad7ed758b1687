package import Ground

/// A change of owners: who is to be offered what a node holds (DESIGN.md §7 "Owners and the path of
/// a miss").
///
/// An owner has what is held if it was one on every ring since the last one by which everything was
/// offered; who was away on one of them may have missed what came meanwhile.
package struct RingMove: Sendable {
    /// The ring by which everything held was offered, and all since.
    package private(set) var before: [Ring]
    package private(set) var to: Ring
    /// How many of a key's owners keep it on disk.
    package let replicas: Int
    /// The node that holds, which offers nothing to itself.
    package let holder: NodeID

    /// The most rings that are remembered, beyond which everybody is offered everything.
    package static let ringsMax = 8

    /// Nothing has moved: by this ring everything held was offered.
    package init(settled ring: Ring, replicas: Int, holder: NodeID) {
        before = [ring]
        to = ring
        self.replicas = replicas
        self.holder = holder
    }

    /// True if nobody has become an owner of anything.
    package var isNone: Bool { before.allSatisfy { $0 == to } }

    /// Others own things from now on.
    package mutating func change(to ring: Ring) {
        if before.last != to { before.append(to) }
        to = ring
        if before.count > Self.ringsMax { before = [Ring(members: [])] }
    }

    /// A node has not been offered what it was to be, and is to be offered all that it owns.
    package mutating func miss(_ node: NodeID) {
        before.append(to.removing(node))
    }

    /// Everything held was offered by the ring that holds now.
    package mutating func settle() {
        before = [to]
    }

    /// Those that have become owners of an entry, in order of preference.
    package func gainers(of digest: EntryDigest) -> [NodeID] {
        to.owners(of: digest).prefix(replicas).filter { owner in
            owner != holder
                && !before.allSatisfy { $0.owners(of: digest).prefix(replicas).contains(owner) }
        }
    }
}
