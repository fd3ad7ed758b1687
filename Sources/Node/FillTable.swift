import Ground
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
    private let fillsMax: Atomic<Int>
    private let originCount = Atomic<Int>(0)
    private let marks: MarkBook

    private final class Shard: Sendable {
        let runs = Mutex<[[UInt8]: [FillRun]]>([:])
    }

    /// An empty table; `fillsMax` fetches may be asking origins at once in the whole node.
    init(fillsMax: Int, marks: MarkBook, shardCount: Int = 64) {
        self.marks = marks
        self.fillsMax = Atomic(fillsMax)
        shards = (0..<shardCount).map { _ in Shard() }
    }

    /// From now on as many may ask; those that do go on.
    func adopt(fillsMax: Int) {
        self.fillsMax.store(fillsMax, ordering: .relaxed)
    }

    /// Fetches that are asking origins, those that nobody can join included.
    var count: Int { originCount.load(ordering: .relaxed) }

    /// A fetch is about to ask its origin, and does so until ``originEnded()``; false if as many do
    /// as are allowed.
    func originBegins() -> Bool {
        guard
            originCount.add(1, ordering: .relaxed).newValue
                <= fillsMax.load(ordering: .relaxed)
        else {
            originCount.subtract(1, ordering: .relaxed)
            return false
        }
        return true
    }

    func originEnded() {
        originCount.subtract(1, ordering: .relaxed)
    }

    /// Joins a fetch for this key or begins one; never one that was begun before an invalidation
    /// that covers it, as far as is known what it brings (DESIGN.md §7).
    ///
    /// Under the lock `lookUp`, which looks for a usable entry in memory, and then `begin`, which
    /// makes the fetch, are called at most once each.
    func admit(
        key: [UInt8], hash: UInt64, wanted: Negotiation, query: SiteRequest? = nil,
        lookUp: () -> Resident?, begin: () -> FillRun
    ) -> Admission {
        shard(hash).runs.withLock { runs in
            for run in joinable(runs[key]) {
                if let reader = run.join(wanted, query) { return .joined(run, reader) }
            }
            if let resident = lookUp() { return .stored(resident) }
            let (run, reader) = Self.begin(wanted, query, begin)
            runs[key, default: []].append(run)
            return .begun(run, reader)
        }
    }

    /// Joins a fetch for this key of which `isMeant` is true; nil if there is none.
    func join(
        key: [UInt8], hash: UInt64, wanted: Negotiation, where isMeant: (FillRun) -> Bool
    ) -> (FillRun, Fill.ReaderID)? {
        shard(hash).runs.withLock { runs in
            for run in joinable(runs[key]) where isMeant(run) {
                if let reader = run.join(wanted) { return (run, reader) }
            }
            return nil
        }
    }

    private func joinable(_ runs: [FillRun]?) -> [FillRun] {
        guard let runs, !runs.isEmpty else { return [] }
        let stamp = marks.stamp
        return runs.filter { $0.stamp == stamp || !$0.isOvertaken }
    }

    /// Begins a fetch that nobody else will join.
    func beginAlone(
        key: [UInt8], hash: UInt64, _ wanted: Negotiation, _ query: SiteRequest? = nil,
        begin: () -> FillRun
    ) -> (FillRun, Fill.ReaderID) {
        shard(hash).runs.withLock { runs in
            let (run, reader) = Self.begin(wanted, query, begin)
            runs[key, default: []].append(run)
            return (run, reader)
        }
    }

    private static func begin(
        _ wanted: Negotiation, _ query: SiteRequest?, _ begin: () -> FillRun
    ) -> (FillRun, Fill.ReaderID) {
        let run = begin()
        guard let reader = run.join(wanted, query) else {
            preconditionFailure("a fetch that has not begun refuses its first reader")
        }
        return (run, reader)
    }

    /// The fetch is over; its entry, if there is one, is in memory by now.
    func remove(_ run: FillRun) {
        run.lease.end()
        shard(run.hash).runs.withLock { runs in
            runs[run.key]?.removeAll { $0 === run }
            if runs[run.key]?.isEmpty == true { runs[run.key] = nil }
        }
    }

    private func shard(_ hash: UInt64) -> Shard {
        shards[Int(truncatingIfNeeded: hash & 0xFFFF) % shards.count]
    }
}
