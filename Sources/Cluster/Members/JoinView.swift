package import Ground

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
