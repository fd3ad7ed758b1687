package import Cluster
package import Ground
package import Logging
package import NIOCore
package import Store
package import Telemetry
import Tiers

/// The node that peering runs in: its state for peers, and the service that replies to them.
package struct PeeringHost: Sendable {
    /// The service for peers' queries; `nil` once the node has ended.
    weak let service: (any PeerService)?
    /// The coordinator of invalidations; `nil` once the node has ended.
    weak let purges: PurgeCoordinator?
    /// The tiers whose entries are offered to other nodes.
    let tiers: CacheTiers
    /// The node's counters.
    let counters: NodeCounters
    /// The node's log.
    let logger: Logger

    /// Creates the host from its parts; the service and the coordinator are held weakly.
    package init(
        service: any PeerService, purges: PurgeCoordinator, tiers: CacheTiers,
        counters: NodeCounters, logger: Logger
    ) {
        self.service = service
        self.purges = purges
        self.tiers = tiers
        self.counters = counters
        self.logger = logger
    }
}

/// The part of a node that serves its peers from the cache and stores what they offer.
///
/// Thread-safe.
package protocol PeerService: AnyObject, Sendable {
    /// The rule for which entries may be on several nodes, as of the current settings.
    var sharingRule: SharingRule { get }

    /// Returns the handler of a query, to be started by the caller; `nil` if the node has stopped.
    ///
    /// Called on the connection's loop.
    func makeQueryHandler(
        _ query: PeerQuery, on stream: UInt32, of connection: PeerConnection
    ) -> (any PeerQueryHandler)?

    /// Adds the node's counters, its state and the digests of its sites to a summary that has the
    /// rest.
    func complete(_ summary: inout MemberSummary)

    /// Applies the touches that a peer has sent.
    func touchesReceived(_ touches: [AgedTouch])

    /// Starts the transfer of an offered entry on the connection's loop.
    ///
    /// - Parameters:
    ///   - offer: the accepted offer.
    ///   - peer: the node that made it.
    ///   - connection: the connection with that node.
    ///   - completion: called once with the outcome, on any thread.
    /// - Returns: the transfer, to be retained until it has ended; `nil` if the node has stopped,
    ///   and `completion` is not called.
    func startTransfer(
        of offer: PeerOffer, from peer: NodeID, on connection: PeerConnection,
        completion: @escaping @Sendable (InboundOffers.TransferOutcome) -> Void
    ) -> (any Sendable & AnyObject)?
}

/// The handler of one query of a peer, confined to the loop of its connection.
package protocol PeerQueryHandler: AnyObject {
    /// Begins to reply.
    func start()

    /// Begins to reply once this node has the invalidations that `peer` has reported, or replies
    /// after a time that it lags behind.
    func startWhenCaughtUp(with peer: NodeID)

    /// Appends the next `count` bytes of the announced body to `pieces`.
    func writeBody(_ count: Int, into pieces: inout [ByteBuffer])

    /// Ends the reply, because the peer has cancelled the query or the connection is closed.
    func cancelled()
}

/// The rule for which entries of a node may also be on other nodes.
package struct SharingRule: Sendable {
    /// True if the entries of images may be on other nodes.
    private let sharesImages: Bool
    /// Whether a site's entries may be on other nodes, by the id of the site's disk share.
    private let named: [UInt16: Bool]
    /// True if the entries of all sites that are not in ``named`` may be on other nodes.
    private let sharesOthers: Bool
    private let sharesEntry: @Sendable (MemoryEntry) -> Bool

    /// Creates the rule from a node's settings.
    ///
    /// - Parameters:
    ///   - images: true if the entries of images may be on other nodes.
    ///   - named: the same for the entries of a site, by its ``DiskShareID``.
    ///   - others: the same for the entries of all sites that are not in `named`.
    ///   - entry: returns true if an entry in memory, whose key is known, may be on other nodes.
    package init(
        images: Bool, named: [UInt16: Bool], others: Bool,
        entry: @escaping @Sendable (MemoryEntry) -> Bool
    ) {
        self.sharesImages = images
        self.named = named
        self.sharesOthers = others
        self.sharesEntry = entry
    }

    /// Returns true if the entries of a disk share may be on other nodes; for entries on disk,
    /// whose keys the index does not hold.
    func contains(share: UInt16) -> Bool {
        share == DiskShareID.images ? sharesImages : named[share] ?? sharesOthers
    }

    /// Returns true if an entry in memory may be on other nodes.
    func contains(_ entry: MemoryEntry) -> Bool { sharesEntry(entry) }
}
