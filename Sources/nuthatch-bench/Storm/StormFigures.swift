/// The slices of one kind, taken together.
struct SliceStatistics {
    private let sorted: [UInt64]
    private let slices: [[UInt64]]
    let statuses: [Int: Int]
    private let skipped: Int

    init(_ slices: [ConstantRateLoad.Measurement]) {
        self.slices = slices.map(\.latencies.sorted)
        sorted = self.slices.joined().sorted()
        statuses = slices.reduce(into: [:]) { $0.merge($1.statuses, uniquingKeysWith: +) }
        skipped = slices.reduce(0) { $0 + $1.skipped }
    }

    /// Nanoseconds that so large a part of the answers took at most.
    func quantile(_ part: Double) -> UInt64 {
        Latencies.quantile(at: part, of: sorted)
    }

    /// The same of each slice by itself.
    func quantiles(_ part: Double) -> [UInt64] {
        slices.map { Latencies.quantile(at: part, of: $0) }
    }

    /// So large a part's time as so many times that of `other`: the median over the rounds, whose
    /// slices follow each other within seconds.
    func ratio(to other: SliceStatistics, _ part: Double) -> Double {
        let ratios = zip(quantiles(part), other.quantiles(part)).map { one, other in
            Double(one) / Double(max(1, other))
        }
        let median = ratios.sorted()[ratios.count / 2]
        return (median * 100).rounded() / 100
    }

    var text: String {
        let responses = statuses.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        let times = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)].map { name, part in
            "\(name) \(quantile(part) / 1000) µs"
        }
        let left = skipped > 0 ? ", not asked: \(skipped)" : ""
        return "\(sorted.count) answers (\(responses.joined(separator: ", "))\(left)), "
            + times.joined(separator: ", ")
    }
}

/// What was seen in every slice, by its kind.
struct StormSlices {
    var quiet: [ConstantRateLoad.Measurement] = []
    /// Hits while as many requests as in a storm went to another server.
    var control: [ConstantRateLoad.Measurement] = []
    var underLoad: [ConstantRateLoad.Measurement] = []
    var misses: [ConstantRateLoad.Measurement] = []

    func report() {
        let (quiet, aside) = (SliceStatistics(quiet), SliceStatistics(control))
        let stormy = SliceStatistics(underLoad)
        print("hits, quiet:               \(quiet.text)")
        print("hits, same load elsewhere: \(aside.text)")
        print("hits, with misses:         \(stormy.text)")
        print("misses:                    \(SliceStatistics(misses).text)")
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            print(
                "\(name) of hits with misses: \(stormy.ratio(to: quiet, part)) of quiet, "
                    + "\(stormy.ratio(to: aside, part)) of the same load elsewhere")
        }
    }

}
