import Cluster
import Ground
import Serving
import Tiers

/// One URL at the origin.
struct SimulatedKey: Sendable {
    var url: [UInt8]
    var host: [UInt8]
    var path: [UInt8]
    var name: EntryName
    var tags: [[UInt8]]
    var maxAge: Interval
    var staleWhileRevalidate: Interval
    /// It may stand in for an origin that fails, however old.
    var isStaleIfError: Bool

    /// What a purge of it is called.
    var urlName: [UInt8] { Array(URLName.name(ofKey: url)) }
}

/// A stored answer whose body is a version number.
struct SimulatedEntry: Hashable, Sendable {
    var key: Int
    var contentVersion: Int
    var invalidationVersion: InvalidationVersion
    /// On the clock of its node.
    var freshUntil: Instant
    var validatedAt: Instant
    /// On disk the order in which it was written, and when.
    var sequence: UInt64 = 0
    var writtenAt = Instant.zero
}

/// By which way bytes come.
enum TransferKind: Sendable {
    case fetch, get, probe, offer, drain, revalidation
}

/// A fetch at one node, from the origin or from a peer.
struct SimulatedFetch: Sendable {
    enum Waiter: Hashable, Sendable {
        case client
        case peer(Int, ask: UInt64)
    }

    struct OutstandingRequest: Sendable {
        var number: UInt64
        var path: TransferKind
        var version: InvalidationVersion
        /// On the clock of the asker.
        var sentAt: Instant
        /// What the peer would give.
        var held: SimulatedEntry?
    }

    /// Who waits, and under which name.
    struct Reader: Sendable {
        let id: Fetch.ReaderID
        let waiter: Waiter
    }

    let key: Int
    /// Of its first request.
    let version: InvalidationVersion
    /// What nodes run, without bytes.
    var lookup: Lookup
    /// By node.
    var requests = SortedTable<Int, OutstandingRequest>()
    /// The request to the origin that is out.
    var origin: OutstandingRequest?
    /// What the origin is asked to validate.
    var storedEntry: SimulatedEntry?
    var readers: [Reader] = []

    /// Caused by the request of `waiter`, or by nobody's.
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

    /// Lets a request wait for it; false if it cannot be served from it.
    mutating func join(_ waiter: Waiter) -> Bool {
        guard let id = lookup.join(Lookup.Candidate(nil)) else { return false }
        readers.append(Reader(id: id, waiter: waiter))
        return true
    }

    /// Those wait no more of whom `isGone` is true.
    mutating func leave(where isGone: (Waiter) -> Bool) {
        for reader in readers where isGone(reader.waiter) { leave(reader.id) }
        readers.removeAll { isGone($0.waiter) }
    }

    private mutating func leave(_ id: Fetch.ReaderID) {
        var effects: [LookupEffect] = []
        lookup.fetch.readerLeft(id, effects: &effects)
    }

    /// The peers that wait, and what they asked.
    var peers: [(node: Int, ask: UInt64)] {
        readers.compactMap { reader in
            if case .peer(let node, let ask) = reader.waiter { (node, ask) } else { nil }
        }
    }
}

/// What outlives a process.
struct SimulatedStorage: Sendable {
    var epoch: UInt64 = 0
    var records: [InvalidationRecord] = []
    var floors: [StreamPosition] = []
    var retired: [StreamPosition] = []
    var persistentState: VoterSetConsensus.PersistentState?
    var marks: [InvalidationMark] = []
    /// Everything stamped before it is to be validated, whatever else is granted.
    var validateBefore = InvalidationVersion.zero
    /// Of stored answers, those that are superseded and not reclaimed included.
    var entries: [SimulatedEntry] = []
    var sequence: UInt64 = 0
    /// Purges whose marks are here.
    var purges: Set<Int> = []
    /// All that were ever here.
    var synced: Set<RecordID> = []

    /// Takes a record in; gives the names that are named to others from now on: none behind a gap.
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

    /// Records that are held behind the position, without a gap.
    func names(behind position: StreamPosition) -> [RecordID] {
        var named: [RecordID] = []
        var name = RecordID(stream: position.process, number: position.count + 1)
        while synced.contains(name) {
            named.append(name)
            name.number += 1
        }
        return named
    }

    /// Records up to there go; with what they have invalidated only by mistake.
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

/// One node: what it stores, and the run that is lost with its process.
struct SimulatedCacheNode: Sendable {
    /// Another one after its directory was lost.
    var id: NodeID
    let clock: SimulatedClock
    var storage = SimulatedStorage()
    var replication: InvalidationReplication?
    var process = ProcessID(high: 0, low: 0)
    /// Counts runs: what was meant for an earlier one is lost.
    var run = 0
    var epoch: UInt64 = 0
    var pausedUntil = Instant.zero
    /// What comes to it takes so much longer until then.
    var lag = Interval.zero
    var laggingUntil = Instant.zero
    var plannedTick = Instant.distantFuture
    var batch: [LogWrite] = []
    var marks = MarkTable()
    /// Those of this run that may turn out to cover nothing.
    var young = UnconfirmedMarks()
    /// All, also those that were let go of: what a start goes by.
    var markList: [InvalidationMark] = []
    var validateBefore = InvalidationVersion.zero
    /// By key.
    var memory: [SimulatedEntry?] = []
    /// The newest on disk, by key; empty until the disk is scanned.
    var index: [SimulatedEntry?] = []
    var isScanned = false
    /// Being written anew there, by key.
    var reinserting: [SimulatedEntry?] = []
    var fetches = SortedTable<UInt64, SimulatedFetch>()
    /// The fill that a request for the key may join.
    var joinableFetches: [UInt64?] = []
    /// Purges that were applied, by this run or with marks on disk.
    var applied: Set<Int> = []
    /// All that is held was made soft for what lies up to there.
    var validated = PositionVector()
    var checker = ReplicationChecker()
    /// It has met somebody since it started.
    var hasTable = false
    /// It can still be told that its directory is an older copy.
    var isJoining: Bool { !isServing || !hasTable }
    /// Whom it sees, and since when not any more.
    var visibleNodes: [Bool] = []
    var unseenSince: [Instant?] = []
    var isDraining = false
    /// What it looks for since it started.
    var discovery: ClusterDiscovery?
    /// Under what it was told last that it may open a cluster.
    var formationRule: ClusterFormation.Rule?
    /// Its doors are open.
    var isServing = false
    /// It goes: the step it is at, and since when.
    var shutdown: (step: ShutdownStep, since: Instant)?
    /// It said that it goes, and has not started since.
    var hasLeft = false
    /// It has another secret than the others until then.
    var wrongSecretUntil = Instant.zero
    /// Its directory as it was some time ago.
    var copy: SimulatedStorage?
    /// The epoch of a copy that its directory is, while nobody has told it so.
    var undetectedCopyEpoch: UInt64?
    /// As what, and in which start, others were seen last.
    var epochs: [NodeID: (epoch: UInt64, process: ProcessID)] = [:]
    /// Owners have changed: holders offer until then.
    var offersDue = Instant.zero
    /// What a timer would say of the fence.
    var isTimerFenceOpen = false
    var fencedSince: Instant?
    /// Who answered its rounds first: when, which node, in which run of that.
    var roundContacts: [(at: Instant, by: Int, run: Int)] = []
    var wasStarted = false

    var isUp: Bool { replication != nil }

    /// The stamp of a request that begins now.
    var invalidationVersion: InvalidationVersion {
        InvalidationVersion(epoch: epoch, count: replication?.appliedCount ?? 0)
    }
}

/// A node's boot clock: it shows another time than the world's, and runs a little fast or slow.
struct SimulatedClock: Sendable {
    private let beginning: Instant
    /// What it shows more at the beginning.
    private let offset: Interval
    /// By so many millionths it is too fast.
    private let drift: Int64

    /// Of a clock whose quartz nobody holds against another, in millionths.
    private static let driftMax: Int64 = 500

    init(from beginning: Instant, using dice: inout SplitMix64) {
        self.beginning = beginning
        offset = .milliseconds(Int64.random(in: 0...50_000, using: &dice))
        drift = Int64.random(in: -Self.driftMax...Self.driftMax, using: &dice)
    }

    /// What two clocks may make of an interval more than it is.
    static func error(in interval: Interval) -> Interval {
        Interval(nanoseconds: interval.nanoseconds * 2 * driftMax / 1_000_000)
    }

    func reading(at now: Instant) -> Instant {
        let passed = (now - beginning).nanoseconds
        return now + offset + Interval(nanoseconds: passed * drift / 1_000_000)
    }

    /// When it shows `reading`; one that is never to come stays far.
    func instant(of reading: Instant) -> Instant {
        guard reading < .distantFuture else { return reading }
        let shown = (reading - offset - beginning).nanoseconds
        return reading - offset - Interval(nanoseconds: shown / (1_000_000 + drift) * drift)
    }
}

/// What all worlds of a campaign share: node ids, URLs, and who prefers which key.
package struct SimulatedSite: Sendable {
    let nodes: [NodeID]
    let keys: [SimulatedKey]
    /// By key the indices of ``nodes``, the owner first.
    ///
    /// Who is away is left out: that is the ring without it, as long as one of the list is there.
    let preference: [[Int]]

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
