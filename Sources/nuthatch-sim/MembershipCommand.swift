import ArgumentParser
import Ground
import Simulation

/// `nuthatch-sim membership`: measures the speed and costs of the membership, and simulates faults
/// by seed.
struct MembershipCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "membership",
        abstract: "Prints times and bytes of membership in simulated clusters, or plays faults.")

    @Option(help: "Sizes of clusters, 4 to 256, separated by commas.")
    var nodes = "5,50,250"

    @Option(help: "Percentages of packets that have to be sent again, separated by commas.")
    var loss = "0,1,5"

    @Option(help: "Crashes, leaves and twice as many joins in each cluster.")
    var rounds = 10

    @Option(help: "The seed; with --plays, the first one.")
    var seed: UInt64 = 1

    @Flag(help: "Plays the seed's faults instead and prints the digest of the trace.")
    var digest = false

    @Option(help: "Plays the faults of this many seeds instead; stops at the first failure.")
    var plays: UInt64?

    func validate() throws {
        guard 1...1_000 ~= rounds else {
            throw ValidationError("--rounds must be 1 to 1000, not \(rounds)")
        }
        _ = try sizes()
        _ = try losses()
    }

    func run() throws {
        if digest { return try printDigest() }
        if let plays { return try play(plays) }
        print(line(Self.columns.map(\.title)))
        for nodes in try sizes() {
            for loss in try losses() {
                let figures = try MembershipStatistics(
                    nodes: nodes, loss: loss / 100, rounds: rounds, seed: seed)
                print(row(figures))
            }
        }
    }

    /// The columns of the report; times are in milliseconds, as median and maximum.
    private static let columns: [(title: String, width: Int)] = [
        ("nodes", 6), ("loss %", 7), ("cold start", 11), ("killed", 13), ("power lost", 14),
        ("crash known", 14), ("join known", 12), ("leave known", 12), ("false/node-h", 13),
        ("B/s at rest", 12), ("B/s in churn", 12),
    ]

    private func row(_ figures: MembershipStatistics) -> String {
        func times(_ times: [Interval]) -> String {
            "\(times.median.milliseconds)/\((times.max() ?? .zero).milliseconds)"
        }
        func tenths(_ value: Double) -> String { fixed(value, decimals: 1) }
        return line([
            String(figures.nodes), tenths(figures.loss * 100),
            String(figures.coldStart.milliseconds), times(figures.killDetections),
            times(figures.powerDetections), times(figures.crashes), times(figures.joins),
            times(figures.leaves), tenths(Double(figures.falsePositives) / figures.nodeHours),
            tenths(figures.restRate), tenths(figures.churnRate),
        ])
    }

    private func line(_ cells: [String]) -> String {
        zip(cells, Self.columns).map { $0.padded(to: $1.width, isRight: true) }
            .joined(separator: " ")
    }

    private func printDigest() throws {
        var play = MembershipScenario(seed: seed)
        print(hexadecimal(try play.run().digest))
    }

    private func play(_ count: UInt64) throws {
        var recoveries: [Interval] = []
        var wrong: [UInt64] = []
        for seed in seed..<seed + count {
            var play = MembershipScenario(seed: seed)
            let report = try play.run()
            recoveries.append(report.recovery)
            if report.falsePositives > 0 { wrong.append(seed) }
        }
        let worst = recoveries.max() ?? .zero
        print(
            "\(count) plays; from the last fault to one cluster, ms: "
                + "median \(recoveries.median.milliseconds), most \(worst.milliseconds); "
                + "seeds in which a member was wrongly believed dead: \(wrong.count) "
                + "\(wrong.prefix(5).map(String.init).joined(separator: " "))")
    }

    private func sizes() throws -> [Int] { try numbers(nodes, of: "--nodes", in: 4...256) }

    private func losses() throws -> [Double] { try numbers(loss, of: "--loss", in: 0...50) }
}
