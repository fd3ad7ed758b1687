import Foundation
import Glibc
import Ground
import Store
import Synchronization

/// Times in nanoseconds and their statistics.
struct Latencies: Sendable {
    private var all: [UInt64] = []

    var sorted: [UInt64] { all.sorted() }

    mutating func add(_ nanoseconds: UInt64) { all.append(nanoseconds) }
    mutating func add(_ others: Latencies) { all += others.all }

    /// Returns the quantile of sorted times; 0 for none.
    static func quantile(at part: Double, of sorted: [UInt64]) -> UInt64 {
        sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
    }

    /// Returns the quantile relative to that of `others`, like `1.25 times`.
    func ratio(of part: Double, to others: Latencies) -> String {
        let (own, other) = (
            Self.quantile(at: part, of: sorted), Self.quantile(at: part, of: others.sorted)
        )
        guard other > 0 else { return "nothing to compare" }
        return "\(hundredths(Double(own) / Double(other))) times"
    }

    /// The quantiles, like `p50 1.2 µs, p99 …`.
    var text: String {
        guard !all.isEmpty else { return "none" }
        let sorted = sorted
        let at = { (part: Double) in
            "\((Double(Self.quantile(at: part, of: sorted)) / 100).rounded() / 10) µs"
        }
        return "p50 \(at(0.5)), p99 \(at(0.99)), p99.9 \(at(0.999)), most \(at(1))"
    }

    /// Measures look-ups of entries by the popularity of their numbers, each read from the page
    /// cache and checked.
    static func measureLookups(
        _ view: DiskView, _ keys: Int, times: Int = .max, until isOver: () -> Bool = { false }
    ) -> Latencies {
        var latencies = Latencies()
        var dice = SplitMix64(seed: 13)
        var room = [UInt8](repeating: 0, count: DiskView.bufferBytes)
        while latencies.all.count < times, !isOver() {
            let number = BenchDiskLog.zipf(keys, &dice)
            let (key, name) = (BenchDiskLog.key(number), BenchDiskLog.name(number))
            let start = nanoseconds()
            if case .complete = view.readNonblocking(name, key: key, buffer: &room) {
                latencies.all.append(nanoseconds() - start)
            }
        }
        return latencies
    }
}

/// Sampler of times on its own thread until it is stopped.
final class Sampler: Sendable {
    private let isOver = Atomic<Bool>(false)
    private let result = Mutex<Latencies?>(nil)

    /// Starts at once; `sample` must return when its argument returns true.
    init(_ sample: @escaping @Sendable (() -> Bool) -> Latencies) {
        Thread.detachNewThread { [self] in
            let latencies = sample { self.isOver.load(ordering: .relaxed) }
            result.withLock { $0 = latencies }
        }
    }

    func stop() -> Latencies {
        isOver.store(true, ordering: .relaxed)
        while true {
            if let latencies = result.withLock({ $0 }) { return latencies }
            sched_yield()
        }
    }
}

extension Sampler {
    private static let pauseMilliseconds: Int32 = 5

    /// Returns a sampler that repeatedly writes 256 bytes to a file and syncs them.
    static func measuringSyncs(in directory: URL) -> Sampler {
        let path = directory.appendingPathComponent("synced").path
        return Sampler { isOver in
            var latencies = Latencies()
            let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            let bytes = [UInt8](repeating: 7, count: 256)
            while file >= 0, !isOver() {
                let start = nanoseconds()
                guard unsafe write(file, bytes, bytes.count) == bytes.count, fdatasync(file) == 0
                else { break }
                latencies.add(nanoseconds() - start)
                poll(nil, 0, Sampler.pauseMilliseconds)
            }
            if file >= 0 { close(file) }
            return latencies
        }
    }
}
