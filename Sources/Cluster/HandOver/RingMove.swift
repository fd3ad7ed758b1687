package import Ground

/// A change of owners: who is to be offered what a node holds (DESIGN.md §7 "Owners and the path of
/// a miss").
package struct RingMove: Sendable {
    /// The ring by which everything held was offered before.
    package let from: Ring
    package let to: Ring
    /// How many of a key's owners keep it on disk.
    package let replicas: Int
    /// The node that holds, which offers nothing to itself.
    package let holder: NodeID

    package init(from: Ring, to: Ring, replicas: Int, holder: NodeID) {
        self.from = from
        self.to = to
        self.replicas = replicas
        self.holder = holder
    }

    /// True if nobody has become an owner of anything.
    package var isNone: Bool { from == to }

    /// Those that have become owners of an entry, in order of preference.
    package func gainers(of digest: EntryDigest) -> [NodeID] {
        let before = from.owners(of: digest).prefix(replicas)
        return to.owners(of: digest).prefix(replicas).filter {
            $0 != holder && !before.contains($0)
        }
    }
}
