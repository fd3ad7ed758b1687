import Cluster
import Ground
import Serving
import Tiers

/// An object at the origin.
struct SimulatedKey: Sendable {
    var url: [UInt8]
    var host: [UInt8]
    var path: [UInt8]
    var name: EntryName
    var tags: [[UInt8]]
    var maxAge: Interval
    var staleWhileRevalidate: Interval
    /// True if the object may be served stale when the origin fails, at any age.
    var isStaleIfError: Bool

    /// The name under which the object is purged.
    var urlName: [UInt8] { Array(URLName.name(ofKey: url)) }
}

/// A stored response whose body is a version number.
struct SimulatedEntry: Hashable, Sendable {
    var key: Int
    var contentVersion: Int
    var invalidationVersion: InvalidationVersion
    /// The end of freshness, on the node's clock.
    var freshUntil: Instant
    var validatedAt: Instant
    /// The order and time of its write to disk.
    var sequence: UInt64 = 0
    var writtenAt = Instant.zero
}

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

/// The state that outlives a process.
struct SimulatedStorage: Sendable {
    var epoch: UInt64 = 0
    var records: [InvalidationRecord] = []
    var floors: [StreamPosition] = []
    var retired: [StreamPosition] = []
    var persistentState: VoterSetConsensus.PersistentState?
    var marks: [InvalidationMark] = []
    /// The version below which every entry must be revalidated, whatever staleness is permitted.
    var validateBefore = InvalidationVersion.zero
    /// The stored entries, including superseded ones that are not yet reclaimed.
    var entries: [SimulatedEntry] = []
    var sequence: UInt64 = 0
    /// The purges whose marks are stored.
    var purges: Set<Int> = []
    /// All records that were ever stored.
    var synced: Set<RecordID> = []

    /// Stores a record; returns the records that can be listed to others from now on, as no gap
    /// precedes them.
    mutating func add(_ record: InvalidationRecord) -> [RecordID] {
        records.append(record)
        synced.insert(record.id)
        let stream = record.id.stream
        let kept = PositionVector(floors + retired).count(of: stream)
        var name = RecordID(stream: stream, number: min(kept, record.id.number) + 1)
        while name.number < record.id.number, synced.contains(name) { name.number += 1 }
        guard name.number >= record.id.number else { return [] }
        return names(behind: StreamPosition(process: stream, count: name.number - 1))
    }

    /// Returns the stored records after the position, up to the first gap.
    func names(behind position: StreamPosition) -> [RecordID] {
        var named: [RecordID] = []
        var name = RecordID(stream: position.process, number: position.count + 1)
        while synced.contains(name) {
            named.append(name)
            name.number += 1
        }
        return named
    }

    /// Drops the records up to the position; dropping their marks too is a deliberate fault.
    mutating func drop(_ position: StreamPosition, withMarks: Bool) {
        let gone = records.filter {
            $0.id.stream == position.process && $0.id.number <= position.count
        }
        let names = Set(gone.map(\.id))
        records.removeAll { names.contains($0.id) }
        guard withMarks else { return }
        for targets in gone.compactMap(\.invalidation.purge?.targets) {
            marks.removeAll { targets.contains($0.target) }
        }
    }
}

/// A simulated node: its storage, and the state that ends with its process.
struct SimulatedCacheNode: Sendable {
    /// The node's id, replaced when the directory is lost.
    var id: NodeID
    let clock: SimulatedClock
    var storage = SimulatedStorage()
    var replication: InvalidationReplication?
    var process = ProcessID(high: 0, low: 0)
    /// The number of the run; events of earlier runs are ignored.
    var run = 0
    var epoch: UInt64 = 0
    var pausedUntil = Instant.zero
    /// The delay of everything received, until ``laggingUntil``.
    var lag = Interval.zero
    var laggingUntil = Instant.zero
    var plannedTick = Instant.distantFuture
    var batch: [LogWrite] = []
    var marks = MarkTable()
    /// The marks of this run that may turn out to cover nothing.
    var unconfirmedMarks = UnconfirmedMarks()
    /// All marks, including dropped ones, as a start restores them.
    var markList: [InvalidationMark] = []
    var validateBefore = InvalidationVersion.zero
    /// The memory tier, by key.
    var memory: [SimulatedEntry?] = []
    /// The newest records on disk, by key; empty until the disk is scanned.
    var index: [SimulatedEntry?] = []
    var isScanned = false
    /// The entries being re-inserted, by key.
    var reinserting: [SimulatedEntry?] = []
    var fetches = SortedTable<UInt64, SimulatedFetch>()
    /// The fetch that a request may join, by key.
    var joinableFetches: [UInt64?] = []
    /// The applied purges, by this run or with marks on disk.
    var applied: Set<Int> = []
    /// The positions up to which everything stored was made stale.
    var validated = PositionVector()
    var checker = ReplicationChecker()
    /// True once the node has been connected with another since its start.
    var hasTable = false
    /// True while the node can still learn that its directory is an older copy.
    var isJoining: Bool { !isServing || !hasTable }
    /// The nodes that this one sees.
    var visibleNodes: [Bool] = []
    /// Since when each node is no longer seen.
    var unseenSince: [Instant?] = []
    var isDraining = false
    /// The search for the cluster since the start.
    var discovery: ClusterDiscovery?
    /// The rule under which it may form a cluster, as last reported.
    var formationRule: ClusterFormation.Rule?
    /// True if the node accepts clients.
    var isServing = false
    /// The shutdown step and when it began; `nil` while the node is not leaving.
    var shutdown: (step: ShutdownStep, since: Instant)?
    /// True after the node has announced its leave, until its next start.
    var hasLeft = false
    /// The end of a period in which the node has another secret than the others.
    var wrongSecretUntil = Instant.zero
    /// An earlier copy of the directory.
    var copy: SimulatedStorage?
    /// The epoch of the copy that the directory is, until a node has detected it.
    var undetectedCopyEpoch: UInt64?
    /// The epoch and the process in which each node was seen last.
    var epochs: [NodeID: (epoch: UInt64, process: ProcessID)] = [:]
    /// The end of the offers that follow a change of owners.
    var offersDue = Instant.zero
    /// The state of the fence if a timer set it.
    var isTimerFenceOpen = false
    var fencedSince: Instant?
    /// The first response to its rounds by each node's run: when, from which node, in which run.
    var roundContacts: [(at: Instant, by: Int, run: Int)] = []
    var wasStarted = false

    var isUp: Bool { replication != nil }

    /// The invalidation version of a request that begins now.
    var invalidationVersion: InvalidationVersion {
        InvalidationVersion(epoch: epoch, count: replication?.appliedCount ?? 0)
    }
}

/// A node's boot clock, with an offset and a drift against simulated time.
struct SimulatedClock: Sendable {
    private let beginning: Instant
    /// The offset at the beginning.
    private let offset: Interval
    /// The drift in millionths; positive if the clock is fast.
    private let drift: Int64

    /// The maximum drift of an unsynchronised clock, in millionths.
    private static let driftMax: Int64 = 500

    init(from beginning: Instant, using dice: inout SplitMix64) {
        self.beginning = beginning
        offset = .milliseconds(Int64.random(in: 0...50_000, using: &dice))
        drift = Int64.random(in: -Self.driftMax...Self.driftMax, using: &dice)
    }

    /// Returns the maximum difference between two clocks over an interval.
    static func error(in interval: Interval) -> Interval {
        Interval(nanoseconds: interval.nanoseconds * 2 * driftMax / 1_000_000)
    }

    /// Returns the time that the clock shows at `now`.
    func reading(at now: Instant) -> Instant {
        let passed = (now - beginning).nanoseconds
        return now + offset + Interval(nanoseconds: passed * drift / 1_000_000)
    }

    /// Returns when the clock shows `reading`; `.distantFuture` is preserved.
    func instant(of reading: Instant) -> Instant {
        guard reading < .distantFuture else { return reading }
        let shown = (reading - offset - beginning).nanoseconds
        return reading - offset - Interval(nanoseconds: shown / (1_000_000 + drift) * drift)
    }
}

/// The state shared by all simulations of a campaign: node ids, objects and the ring's preferences.
package struct SimulatedSite: Sendable {
    let nodes: [NodeID]
    let keys: [SimulatedKey]
    /// The indices of ``nodes`` in order of preference by key, the owner first.
    ///
    /// Without the nodes that are down, the list equals that of the ring without them, as long as
    /// one remains.
    let preference: [[Int]]

    /// Creates a site for up to `count` nodes.
    package init(nodes count: Int) {
        var dice = SplitMix64(seed: UInt64(count))
        let nodes = (0..<count).map { _ in NodeID(using: &dice) }
        let keys = (0..<6).map { Self.key($0, using: &dice) }
        let ring = Ring(members: nodes.map { RingMember($0) })
        self.nodes = nodes
        self.keys = keys
        preference = keys.map { key in
            ring.owners(of: key.name.digest).compactMap { nodes.firstIndex(of: $0) }
        }
    }

    private static func key(_ number: Int, using dice: inout SplitMix64) -> SimulatedKey {
        let host = Array("h\(number % 2).example".utf8)
        let path = Array((number < 3 ? "/a" : "/b").utf8)
        let url = Array("http://".utf8) + host + path + Array("/\(number)".utf8)
        var bytes: [UInt8] = []
        for _ in 0..<4 { bytes.appendLittle(dice.next()) }
        return SimulatedKey(
            url: url, host: host, path: path, name: EntryName(bytes.span),
            tags: [Array("t\(number % 3)".utf8)],
            maxAge: number == 5 ? .milliseconds(700) : .seconds(3_600),
            staleWhileRevalidate: number.isMultiple(of: 2) ? .seconds(3_600) : .zero,
            isStaleIfError: number.isMultiple(of: 3))
    }
}
