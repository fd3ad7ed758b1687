/// The slices of one kind, taken together.
struct StormFigures {
    private let sorted: [UInt64]
    private let slices: [[UInt64]]
    let statuses: [Int: Int]
    private let skipped: Int

    init(_ slices: [StormLoad.Seen]) {
        self.slices = slices.map(\.latencies.sorted)
        sorted = self.slices.joined().sorted()
        statuses = slices.reduce(into: [:]) { $0.merge($1.statuses, uniquingKeysWith: +) }
        skipped = slices.reduce(0) { $0 + $1.skipped }
    }

    /// Nanoseconds that so large a part of the answers took at most.
    func at(_ part: Double) -> UInt64 {
        Latencies.value(at: part, of: sorted)
    }

    /// The same of each slice by itself.
    func each(_ part: Double) -> [UInt64] {
        slices.map { Latencies.value(at: part, of: $0) }
    }

    /// So large a part's time as so many times that of `other`: the median over the rounds, whose
    /// slices follow each other within seconds.
    func ratio(to other: StormFigures, _ part: Double) -> Double {
        let ratios = zip(each(part), other.each(part)).map { one, other in
            Double(one) / Double(max(1, other))
        }
        let median = ratios.sorted()[ratios.count / 2]
        return (median * 100).rounded() / 100
    }

    var text: String {
        let answers = statuses.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        let times = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)].map { name, part in
            "\(name) \(at(part) / 1000) µs"
        }
        let left = skipped > 0 ? ", not asked: \(skipped)" : ""
        return "\(sorted.count) answers (\(answers.joined(separator: ", "))\(left)), "
            + times.joined(separator: ", ")
    }
}

/// What was seen in every slice, by its kind.
struct StormSlices {
    var quiet: [StormLoad.Seen] = []
    /// Hits while as many requests as in a storm went to another server.
    var aside: [StormLoad.Seen] = []
    var stormy: [StormLoad.Seen] = []
    var misses: [StormLoad.Seen] = []

    func report() {
        let (quiet, aside) = (StormFigures(quiet), StormFigures(aside))
        let stormy = StormFigures(stormy)
        print("hits, quiet:               \(quiet.text)")
        print("hits, same load elsewhere: \(aside.text)")
        print("hits, with misses:         \(stormy.text)")
        print("misses:                    \(StormFigures(misses).text)")
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            print(
                "\(name) of hits with misses: \(stormy.ratio(to: quiet, part)) of quiet, "
                    + "\(stormy.ratio(to: aside, part)) of the same load elsewhere")
        }
    }

}
