import Cluster
import Ground
import Serving
import Tiers

/// The ways in which an object is transferred.
enum TransferKind: Sendable {
    case fetch, get, probe, offer, drain, revalidation

    /// The goal that a purge during such a transfer reaches.
    var goal: InvalidationCoverageGoal {
        switch self {
        case .fetch: .duringFetch
        case .get: .duringGet
        case .probe: .duringProbe
        case .offer: .duringOffer
        case .drain: .duringDrain
        case .revalidation: .duringRevalidation
        }
    }
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
        /// The invalidation version of the node when the request was sent.
        var version: InvalidationVersion
        /// When the request was sent, on the requester's clock.
        var sentAt: Instant
        /// The entry that the peer offers.
        var held: SimulatedEntry?

        /// Returns the entry of a key that a response brings.
        func entry(
            _ key: Int, version content: Int, freshFor: Interval, validationAge: Interval = .zero
        ) -> SimulatedEntry {
            SimulatedEntry(
                key: key, contentVersion: content, invalidationVersion: version,
                freshUntil: sentAt + freshFor, validatedAt: sentAt - validationAge)
        }
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

    /// Reports to the fetch that a reader has left.
    private mutating func leave(_ id: Fetch.ReaderID) {
        var effects: [LookupEffect] = []
        lookup.fetch.readerLeft(id, effects: &effects)
    }

    /// The outstanding requests, to peers and to the origin.
    var outstandingRequests: [OutstandingRequest] {
        requests.values + [origin].compactMap(\.self)
    }

    /// The lowest version of the fetch and of the entry to revalidate.
    var oldestVersion: InvalidationVersion {
        min(version, storedEntry?.invalidationVersion ?? version)
    }

    /// The waiting peers, with their query numbers.
    var peers: [(node: Int, ask: UInt64)] {
        readers.compactMap { reader in
            if case .peer(let node, let ask) = reader.waiter { (node, ask) } else { nil }
        }
    }
}

/// The fetches in progress at one node, by number.
struct SimulatedFetchTable: Sendable {
    private var all = SortedTable<UInt64, SimulatedFetch>()
    /// The fetch that a request may join, by key.
    private var joinable: [UInt64?]

    /// Creates an empty table for `count` keys.
    init(keys count: Int) {
        joinable = Array(repeating: nil, count: count)
    }

    /// The fetch with a number; `nil` if it has ended.
    subscript(number: UInt64) -> SimulatedFetch? {
        get { all[number] }
        set { all[number] = newValue }
    }

    var values: [SimulatedFetch] { all.values }
    var numbered: Zip2Sequence<[UInt64], [SimulatedFetch]> { zip(all.keys, all.values) }

    /// True while a client waits for a response.
    var isServingClients: Bool {
        all.values.contains { $0.readers.contains { $0.waiter == .client } }
    }

    /// Returns true if a key is being fetched.
    func contains(_ key: Int) -> Bool { all.values.contains { $0.key == key } }

    /// Returns the fetch of a key that further requests may join.
    func joinable(_ key: Int) -> UInt64? { joinable[key] }

    /// Returns the fetch that waits for a node's response to a query.
    func waiting(for query: UInt64, from other: Int) -> (number: UInt64, fetch: SimulatedFetch)? {
        numbered.first { $1.requests[other]?.number == query }
    }

    /// Adds a fetch; further requests for its key may join it if `isJoinable`.
    mutating func add(_ fetch: SimulatedFetch, _ number: UInt64, isJoinable: Bool) {
        all[number] = fetch
        if isJoinable { joinable[fetch.key] = number }
    }

    /// Removes a fetch, whether it is complete or of no further use.
    mutating func end(_ number: UInt64) {
        guard let key = all[number]?.key else { return }
        all[number] = nil
        if joinable[key] == number { joinable[key] = nil }
    }

    /// Removes the waiting requests for which `isGone` is true.
    mutating func leave(where isGone: (SimulatedFetch.Waiter) -> Bool) {
        for number in all.keys { all[number]?.leave(where: isGone) }
    }
}
