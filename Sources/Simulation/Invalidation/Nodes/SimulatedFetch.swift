import Cluster
import Ground
import Serving
import Tiers

/// The ways in which an object is transferred.
enum TransferKind: Sendable {
    case fetch, get, probe, offer, drain, revalidation
}

/// A fetch at one node, from the origin or a peer.
struct SimulatedFetch: Sendable {
    /// The origin of a waiting request: a client, or a query of a peer.
    enum Waiter: Hashable, Sendable {
        case client
        case peer(Int, ask: UInt64)
    }

    /// A request that has no final response yet, to a peer or to the origin.
    struct OutstandingRequest: Sendable {
        var number: UInt64
        var path: TransferKind
        var version: InvalidationVersion
        /// When the request was sent, on the requester's clock.
        var sentAt: Instant
        /// The entry that the peer offers.
        var held: SimulatedEntry?
    }

    /// A waiting request and its id in the fetch.
    struct Reader: Sendable {
        let id: Fetch.ReaderID
        let waiter: Waiter
    }

    let key: Int
    /// The invalidation version of the fetch's first request.
    let version: InvalidationVersion
    /// The state machine that nodes run too, without bytes.
    var lookup: Lookup
    /// The outstanding queries, by node.
    var requests = SortedTable<Int, OutstandingRequest>()
    /// The outstanding request to the origin.
    var origin: OutstandingRequest?
    /// The entry to revalidate.
    var storedEntry: SimulatedEntry?
    var readers: [Reader] = []

    /// Creates a fetch, caused by the request of `waiter` if it is not `nil`.
    init(key: Int, begun: InvalidationVersion, _ waiter: Waiter?) {
        self.key = key
        self.version = begun
        var wish = Lookup.Options()
        wish.isForPeer = waiter.map { $0 != .client } ?? false
        lookup = Lookup(
            wish,
            Fetch(windowBytes: 1, keptBytesMax: .max, patience: .seconds(10)))
        guard let id = lookup.join(Lookup.Candidate(nil)) else { return }
        if let waiter {
            readers = [Reader(id: id, waiter: waiter)]
        } else {
            leave(id)
        }
    }

    /// Adds a waiting request; returns false if the fetch cannot serve it.
    mutating func join(_ waiter: Waiter) -> Bool {
        guard let id = lookup.join(Lookup.Candidate(nil)) else { return false }
        readers.append(Reader(id: id, waiter: waiter))
        return true
    }

    /// Removes the waiting requests for which `isGone` is true.
    mutating func leave(where isGone: (Waiter) -> Bool) {
        for reader in readers where isGone(reader.waiter) { leave(reader.id) }
        readers.removeAll { isGone($0.waiter) }
    }

    private mutating func leave(_ id: Fetch.ReaderID) {
        var effects: [LookupEffect] = []
        lookup.fetch.readerLeft(id, effects: &effects)
    }

    /// The waiting peers, with their query numbers.
    var peers: [(node: Int, ask: UInt64)] {
        readers.compactMap { reader in
            if case .peer(let node, let ask) = reader.waiter { (node, ask) } else { nil }
        }
    }
}
