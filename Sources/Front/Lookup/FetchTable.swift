import Ground
import Origin
import Serving
import Store
import Synchronization

/// The fetches in progress that further requests may join, by normalised URL.
///
/// A fetch inserts its entry into memory before it leaves this table, and a request that finds no
/// fetch here looks into memory once more under the same lock. So a stored response is always in at
/// least one of them.
final class FetchTable: Sendable {
    /// Result for a request that memory could not serve.
    enum Admission {
        /// The response was stored in the meantime.
        case stored(MemoryEntry)
        /// The request joined this fetch, which another request caused.
        case joined(ActiveFetch, Fetch.ReaderID)
        /// The request causes this fetch, which the caller must start.
        case started(ActiveFetch, Fetch.ReaderID)
    }

    private let shards: [Shard]
    private let originFetches: Mutex<OriginFetches>
    private let invalidationIndex: InvalidationIndex

    /// Fetches in progress at origins.
    ///
    /// Lock order: this lock may be held when a fetch's lock is taken, but is never taken while one
    /// is held.
    private struct OriginFetches {
        /// Quotas of the fetches.
        var quotas: QuotaTable
        /// Quota holders of each fetch.
        var holders: [ObjectIdentifier: [QuotaHolder]] = [:]
        /// Fetches without readers.
        var unread: [ObjectIdentifier: ActiveFetch] = [:]

        /// Forgets a fetch and releases its quotas, if it holds any.
        mutating func end(_ run: ActiveFetch) {
            unread[ObjectIdentifier(run)] = nil
            guard let held = holders.removeValue(forKey: ObjectIdentifier(run)) else { return }
            quotas.release(held)
        }

        /// Removes the fetch without readers that receives the fewest bytes per second, releases
        /// its quotas, and returns it; `nil` if all have readers.
        mutating func removeSlowest(now: Instant) -> ActiveFetch? {
            let slowest = unread.values.map { ($0, $0.bytesPerSecond(now: now)) }
                .min { $0.1 < $1.1 }?.0
            if let slowest { end(slowest) }
            return slowest
        }
    }

    /// Fetches of a part of the keys.
    private final class Shard: Sendable {
        /// Fetches by the keyed hashes of their keys.
        let fetches = Mutex<[UInt64: [ActiveFetch]]>([:])
    }

    /// Creates an empty table with the limits of `settings`.
    init(_ settings: NodeSettings, marks: InvalidationIndex, shardCount: Int = 64) {
        self.invalidationIndex = marks
        originFetches = Mutex(OriginFetches(quotas: QuotaTable(settings.fetchShares)))
        shards = (0..<shardCount).map { _ in Shard() }
    }

    /// Adopts new limits; fetches in progress continue.
    func adopt(_ settings: NodeSettings) {
        originFetches.withLock { $0.quotas.limits = settings.fetchShares }
    }

    /// Number of fetches in progress at origins, including those that cannot be joined.
    var count: Int { originFetches.withLock { $0.quotas.count } }

    /// Admits a fetch to its origin on behalf of `holders`, until ``originFetchEnded(_:)``.
    ///
    /// If their quotas permit it but all slots are taken, the slowest fetch without readers is
    /// cancelled for it.
    ///
    /// - Parameters:
    ///   - run: the fetch.
    ///   - holders: the holders to charge.
    ///   - now: the current time.
    /// - Returns: `nil` if it was admitted, otherwise the exhausted limit.
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
        if let givenUp { givenUp.context.fetches.perform(on: givenUp) { $0.cancel() } }
        return obstacle
    }

    /// Charges a fetch in progress to other holders, for example after a redirect; returns false,
    /// with the holders unchanged, if their quota is exhausted.
    ///
    /// A fetch that holds no slot is not charged.
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

    /// Records whether a fetch has readers at this moment; does nothing if it holds no slot.
    func readersChanged(_ run: ActiveFetch) {
        originFetches.withLock { asking in
            guard asking.holders[ObjectIdentifier(run)] != nil else { return }
            asking.unread[ObjectIdentifier(run)] = run.isUnread ? run : nil
        }
    }

    /// Releases the slot and the quotas of a fetch; does nothing if it holds none.
    func originFetchEnded(_ run: ActiveFetch) {
        originFetches.withLock { $0.end(run) }
    }

    /// Joins a fetch for this key or begins one.
    ///
    /// A fetch that began before an invalidation that covers it is not joined, as far as its
    /// response is known (Design, "Versions and marks").
    ///
    /// - Parameters:
    ///   - query: the request.
    ///   - lookUp: looks for a usable entry in memory; called at most once, under the lock.
    ///   - start: creates the fetch; called at most once, under the lock, after `lookUp`.
    /// - Returns: the entry found by `lookUp`, or the fetch with the reader of the request; the
    ///   caller must start a fetch that is new.
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

    /// Joins a fetch for this key for which `isMeant` returns true; returns `nil` if there is none.
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

    /// Returns those of `runs` that a new request for the key may join.
    private func joinable(_ runs: [ActiveFetch]?, _ query: SiteRequest) -> [ActiveFetch] {
        guard let runs, !runs.isEmpty else { return [] }
        let version = invalidationIndex.version
        return runs.filter {
            $0.key == query.key && ($0.invalidationVersion == version || !$0.isInvalidated)
        }
    }

    /// Adds a fetch under the hash of its key.
    private static func add(_ run: ActiveFetch, to runs: inout [UInt64: [ActiveFetch]]) {
        if let place = runs.index(forKey: run.hash) {
            runs.values[place].append(run)
        } else {
            runs[run.hash] = [run]
        }
    }

    /// Adds the fetch that `start` creates, without looking for one to join; the caller must start
    /// it.
    ///
    /// The options of the fetch must be exclusive, so that no other request joins it.
    func startExclusive(
        _ query: SiteRequest, start: () -> ActiveFetch
    ) -> (ActiveFetch, Fetch.ReaderID) {
        shard(query.hash).fetches.withLock { runs in
            let (run, reader) = Self.start(query, start)
            Self.add(run, to: &runs)
            return (run, reader)
        }
    }

    /// Creates a fetch with `query` as its first reader; the caller must start it.
    private static func start(
        _ query: SiteRequest, _ begin: () -> ActiveFetch
    ) -> (ActiveFetch, Fetch.ReaderID) {
        let run = begin()
        guard let reader = run.join(query) else {
            preconditionFailure("a fetch that has not begun refuses its first reader")
        }
        return (run, reader)
    }

    /// Removes a fetch that no request may join any more, and unpins its invalidation version; its
    /// entry, if any, must be in memory by now.
    func remove(_ run: ActiveFetch) {
        run.versionPin.release()
        shard(run.hash).fetches.withLock { runs in
            guard let place = runs.index(forKey: run.hash) else { return }
            runs.values[place].removeAll { $0 === run }
            if runs.values[place].isEmpty { runs.remove(at: place) }
        }
    }

    /// Returns the shard of the keys with this keyed hash.
    private func shard(_ hash: UInt64) -> Shard {
        shards[Int(truncatingIfNeeded: hash & 0xFFFF) % shards.count]
    }
}
