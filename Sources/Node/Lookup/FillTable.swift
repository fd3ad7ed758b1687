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
final class FillTable: Sendable {
    /// What a request that memory could not serve does.
    enum Admission {
        /// It was stored in the meantime.
        case stored(Resident)
        /// It waits for this fetch, which another request caused.
        case joined(FillRun, Fill.ReaderID)
        /// It causes this fetch, which the caller starts.
        case begun(FillRun, Fill.ReaderID)
    }

    private let shards: [Shard]
    private let asking: Mutex<Asking>
    private let marks: MarkBook

    /// Fetches that are asking origins.
    ///
    /// Its lock may be held when a run's is taken, and is not taken while one is held.
    private struct Asking {
        var shares: ShareTable
        /// Whom they belong to.
        var holders: [ObjectIdentifier: [ShareHolder]] = [:]
        /// Those of them that nobody waits for.
        var unread: [ObjectIdentifier: FillRun] = [:]

        mutating func end(_ run: FillRun) {
            unread[ObjectIdentifier(run)] = nil
            guard let held = holders.removeValue(forKey: ObjectIdentifier(run)) else { return }
            shares.giveBack(held)
        }

        mutating func giveUpSlowest(now: Instant) -> FillRun? {
            let slowest = unread.values.map { ($0, $0.bytesPerSecond(now: now)) }
                .min { $0.1 < $1.1 }?.0
            if let slowest { end(slowest) }
            return slowest
        }
    }

    private final class Shard: Sendable {
        /// By the keyed hashes of their keys.
        let runs = Mutex<[UInt64: [FillRun]]>([:])
    }

    /// An empty table with the `fillsMax` and the shares of `settings`.
    init(_ settings: NodeSettings, marks: MarkBook, shardCount: Int = 64) {
        self.marks = marks
        asking = Mutex(Asking(shares: ShareTable(settings.fillShares)))
        shards = (0..<shardCount).map { _ in Shard() }
    }

    /// From now on as many may ask; those that do go on.
    func adopt(_ settings: NodeSettings) {
        asking.withLock { $0.shares.limits = settings.fillShares }
    }

    /// Fetches that are asking origins, those that nobody can join included.
    var count: Int { asking.withLock { $0.shares.count } }

    /// A fetch for `holders` is about to ask its origin, and does so until ``originEnded(_:)``; not
    /// if as many do as are allowed.
    ///
    /// Where all places are taken, one that nobody waits for gives its place up, the slowest first.
    func originBegins(
        _ run: FillRun, for holders: [ShareHolder], now: Instant
    ) -> ShareTable.Obstacle? {
        let (obstacle, givenUp) = asking.withLock { asking in
            let obstacle = asking.shares.obstacle(to: holders)
            guard obstacle != .share else { return (obstacle, FillRun?.none) }
            let givenUp = obstacle == .places ? asking.giveUpSlowest(now: now) : nil
            guard obstacle == nil || givenUp != nil else { return (obstacle, nil) }
            asking.shares.take(holders)
            asking.holders[ObjectIdentifier(run)] = holders
            return (nil, givenUp)
        }
        if let givenUp { givenUp.hall.tell(givenUp) { $0.cancel() } }
        return obstacle
    }

    /// A fetch belongs to others now, whom it has found on its way; false if these have their
    /// share.
    func move(_ run: FillRun, to holders: [ShareHolder]) -> Bool {
        asking.withLock { asking in
            guard let before = asking.holders[ObjectIdentifier(run)] else { return true }
            asking.shares.giveBack(before)
            let mayGo = asking.shares.hasShare(for: holders)
            asking.shares.take(mayGo ? holders : before)
            asking.holders[ObjectIdentifier(run)] = mayGo ? holders : before
            return mayGo
        }
    }

    /// Whether anybody waits for a fetch has changed.
    func readersChanged(_ run: FillRun) {
        asking.withLock { asking in
            guard asking.holders[ObjectIdentifier(run)] != nil else { return }
            asking.unread[ObjectIdentifier(run)] = run.isUnread ? run : nil
        }
    }

    func originEnded(_ run: FillRun) {
        asking.withLock { $0.end(run) }
    }

    /// Joins a fetch for this key or begins one; never one that was begun before an invalidation
    /// that covers it, as far as is known what it brings (DESIGN.md §7).
    ///
    /// Under the lock `lookUp`, which looks for a usable entry in memory, and then `begin`, which
    /// makes the fetch, are called at most once each.
    func admit(
        _ query: SiteRequest, lookUp: () -> Resident?, begin: () -> FillRun
    ) -> Admission {
        shard(query.hash).runs.withLock { runs in
            for run in joinable(runs[query.hash], query) {
                if let reader = run.join(query) { return .joined(run, reader) }
            }
            if let resident = lookUp() { return .stored(resident) }
            let (run, reader) = Self.begin(query, begin)
            Self.add(run, to: &runs)
            return .begun(run, reader)
        }
    }

    /// Joins a fetch for this key of which `isMeant` is true; nil if there is none.
    func join(
        _ query: SiteRequest, where isMeant: (FillRun) -> Bool
    ) -> (FillRun, Fill.ReaderID)? {
        shard(query.hash).runs.withLock { runs in
            for run in joinable(runs[query.hash], query) where isMeant(run) {
                if let reader = run.join(query) { return (run, reader) }
            }
            return nil
        }
    }

    private func joinable(_ runs: [FillRun]?, _ query: SiteRequest) -> [FillRun] {
        guard let runs, !runs.isEmpty else { return [] }
        let stamp = marks.stamp
        return runs.filter {
            $0.key == query.key && ($0.stamp == stamp || !$0.isOvertaken)
        }
    }

    private static func add(_ run: FillRun, to runs: inout [UInt64: [FillRun]]) {
        if let place = runs.index(forKey: run.hash) {
            runs.values[place].append(run)
        } else {
            runs[run.hash] = [run]
        }
    }

    /// Begins a fetch that nobody else will join.
    func beginAlone(
        _ query: SiteRequest, begin: () -> FillRun
    ) -> (FillRun, Fill.ReaderID) {
        shard(query.hash).runs.withLock { runs in
            let (run, reader) = Self.begin(query, begin)
            Self.add(run, to: &runs)
            return (run, reader)
        }
    }

    private static func begin(
        _ query: SiteRequest, _ begin: () -> FillRun
    ) -> (FillRun, Fill.ReaderID) {
        let run = begin()
        guard let reader = run.join(query) else {
            preconditionFailure("a fetch that has not begun refuses its first reader")
        }
        return (run, reader)
    }

    /// The fetch is over; its entry, if there is one, is in memory by now.
    func remove(_ run: FillRun) {
        run.lease.end()
        shard(run.hash).runs.withLock { runs in
            guard let place = runs.index(forKey: run.hash) else { return }
            runs.values[place].removeAll { $0 === run }
            if runs.values[place].isEmpty { runs.remove(at: place) }
        }
    }

    private func shard(_ hash: UInt64) -> Shard {
        shards[Int(truncatingIfNeeded: hash & 0xFFFF) % shards.count]
    }
}
