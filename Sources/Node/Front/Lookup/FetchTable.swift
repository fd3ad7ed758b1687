import Ground
import Origin
import Serving
import Store
import Synchronization

/// The fetches under way that further requests may join, by normalised URL.
///
/// A fetch puts its entry into memory before it leaves this table, and a request that finds no
/// fetch here looks into memory once more under the same lock. So there is no moment at which a
/// stored answer is in neither.
final class FetchTable: Sendable {
    /// What a request that memory could not serve does.
    enum Admission {
        /// It was stored in the meantime.
        case stored(MemoryEntry)
        /// It waits for this fetch, which another request caused.
        case joined(ActiveFetch, Fetch.ReaderID)
        /// It causes this fetch, which the caller starts.
        case started(ActiveFetch, Fetch.ReaderID)
    }

    private let shards: [Shard]
    private let originFetches: Mutex<OriginFetches>
    private let invalidationIndex: InvalidationIndex

    /// Fetches that are asking origins.
    ///
    /// Its lock may be held when a run's is taken, and is not taken while one is held.
    private struct OriginFetches {
        var quotas: QuotaTable
        /// Whom they belong to.
        var holders: [ObjectIdentifier: [QuotaHolder]] = [:]
        /// Those of them that nobody waits for.
        var unread: [ObjectIdentifier: ActiveFetch] = [:]

        mutating func end(_ run: ActiveFetch) {
            unread[ObjectIdentifier(run)] = nil
            guard let held = holders.removeValue(forKey: ObjectIdentifier(run)) else { return }
            quotas.release(held)
        }

        mutating func removeSlowest(now: Instant) -> ActiveFetch? {
            let slowest = unread.values.map { ($0, $0.bytesPerSecond(now: now)) }
                .min { $0.1 < $1.1 }?.0
            if let slowest { end(slowest) }
            return slowest
        }
    }

    private final class Shard: Sendable {
        /// By the keyed hashes of their keys.
        let fetches = Mutex<[UInt64: [ActiveFetch]]>([:])
    }

    /// An empty table with the `fillsMax` and the shares of `settings`.
    init(_ settings: NodeSettings, marks: InvalidationIndex, shardCount: Int = 64) {
        self.invalidationIndex = marks
        originFetches = Mutex(OriginFetches(quotas: QuotaTable(settings.fetchShares)))
        shards = (0..<shardCount).map { _ in Shard() }
    }

    /// From now on as many may ask; those that do go on.
    func adopt(_ settings: NodeSettings) {
        originFetches.withLock { $0.quotas.limits = settings.fetchShares }
    }

    /// Fetches that are asking origins, those that nobody can join included.
    var count: Int { originFetches.withLock { $0.quotas.count } }

    /// A fetch for `holders` is about to ask its origin, and does so until ``originEnded(_:)``; not
    /// if as many do as are allowed.
    ///
    /// Where all places are taken, one that nobody waits for gives its place up, the slowest first.
    func admitOriginFetch(
        _ run: ActiveFetch, for holders: [QuotaHolder], now: Instant
    ) -> QuotaTable.Exhaustion? {
        let (obstacle, givenUp) = originFetches.withLock { asking in
            let obstacle = asking.quotas.exhaustion(to: holders)
            guard obstacle != .quota else { return (obstacle, ActiveFetch?.none) }
            let givenUp = obstacle == .capacity ? asking.removeSlowest(now: now) : nil
            guard obstacle == nil || givenUp != nil else { return (obstacle, nil) }
            asking.quotas.acquire(holders)
            asking.holders[ObjectIdentifier(run)] = holders
            return (nil, givenUp)
        }
        if let givenUp { givenUp.context.withFetch(givenUp) { $0.cancel() } }
        return obstacle
    }

    /// A fetch belongs to others now, whom it has found on its way; false if these have their
    /// share.
    func reassign(_ run: ActiveFetch, to holders: [QuotaHolder]) -> Bool {
        originFetches.withLock { asking in
            guard let before = asking.holders[ObjectIdentifier(run)] else { return true }
            asking.quotas.release(before)
            let mayGo = asking.quotas.hasQuota(for: holders)
            asking.quotas.acquire(mayGo ? holders : before)
            asking.holders[ObjectIdentifier(run)] = mayGo ? holders : before
            return mayGo
        }
    }

    /// Whether anybody waits for a fetch has changed.
    func readersChanged(_ run: ActiveFetch) {
        originFetches.withLock { asking in
            guard asking.holders[ObjectIdentifier(run)] != nil else { return }
            asking.unread[ObjectIdentifier(run)] = run.isUnread ? run : nil
        }
    }

    func originFetchEnded(_ run: ActiveFetch) {
        originFetches.withLock { $0.end(run) }
    }

    /// Joins a fetch for this key or begins one; never one that was begun before an invalidation
    /// that covers it, as far as is known what it brings (DESIGN.md §7).
    ///
    /// Under the lock `lookUp`, which looks for a usable entry in memory, and then `begin`, which
    /// makes the fetch, are called at most once each.
    func admit(
        _ query: SiteRequest, lookUp: () -> MemoryEntry?, start: () -> ActiveFetch
    ) -> Admission {
        shard(query.hash).fetches.withLock { runs in
            for run in joinable(runs[query.hash], query) {
                if let reader = run.join(query) { return .joined(run, reader) }
            }
            if let entry = lookUp() { return .stored(entry) }
            let (run, reader) = Self.start(query, start)
            Self.add(run, to: &runs)
            return .started(run, reader)
        }
    }

    /// Joins a fetch for this key of which `isMeant` is true; nil if there is none.
    func join(
        _ query: SiteRequest, matching isMeant: (ActiveFetch) -> Bool
    ) -> (ActiveFetch, Fetch.ReaderID)? {
        shard(query.hash).fetches.withLock { runs in
            for run in joinable(runs[query.hash], query) where isMeant(run) {
                if let reader = run.join(query) { return (run, reader) }
            }
            return nil
        }
    }

    private func joinable(_ runs: [ActiveFetch]?, _ query: SiteRequest) -> [ActiveFetch] {
        guard let runs, !runs.isEmpty else { return [] }
        let version = invalidationIndex.version
        return runs.filter {
            $0.key == query.key && ($0.invalidationVersion == version || !$0.isInvalidated)
        }
    }

    private static func add(_ run: ActiveFetch, to runs: inout [UInt64: [ActiveFetch]]) {
        if let place = runs.index(forKey: run.hash) {
            runs.values[place].append(run)
        } else {
            runs[run.hash] = [run]
        }
    }

    /// Begins a fetch that nobody else will join.
    func startExclusive(
        _ query: SiteRequest, start: () -> ActiveFetch
    ) -> (ActiveFetch, Fetch.ReaderID) {
        shard(query.hash).fetches.withLock { runs in
            let (run, reader) = Self.start(query, start)
            Self.add(run, to: &runs)
            return (run, reader)
        }
    }

    private static func start(
        _ query: SiteRequest, _ begin: () -> ActiveFetch
    ) -> (ActiveFetch, Fetch.ReaderID) {
        let run = begin()
        guard let reader = run.join(query) else {
            preconditionFailure("a fetch that has not begun refuses its first reader")
        }
        return (run, reader)
    }

    /// The fetch is over; its entry, if there is one, is in memory by now.
    func remove(_ run: ActiveFetch) {
        run.versionPin.release()
        shard(run.hash).fetches.withLock { runs in
            guard let place = runs.index(forKey: run.hash) else { return }
            runs.values[place].removeAll { $0 === run }
            if runs.values[place].isEmpty { runs.remove(at: place) }
        }
    }

    private func shard(_ hash: UInt64) -> Shard {
        shards[Int(truncatingIfNeeded: hash & 0xFFFF) % shards.count]
    }
}
