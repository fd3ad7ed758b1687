import ArgumentParser
import Ground
import Simulation

/// `nuthatch-sim invalidation`: simulates whole nodes with clients, an origin, purges and all
/// faults by seed, and measures how long a purge takes to reach all nodes.
struct InvalidationCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invalidation",
        abstract: "Searches simulated clusters for reads that violate a purge guarantee.",
        discussion: """
            Exits with status 1 if a guarantee is violated, or if 1,000 seeds or more never reach \
            some class of fault. With --mistakes, each node makes one deliberate mistake, and it \
            is a failure not to find it.
            """)

    @Option(help: "Nodes of each cluster, 3 to 250.")
    var nodes = 5

    @Option(help: "Number of seeds to simulate.")
    var seeds: UInt64 = 100

    @Option(help: "The first seed.")
    var first: UInt64 = 0

    @Flag(help: "Simulates each mistake until it is found, for at most --seeds seeds.")
    var mistakes = false

    @Option(help: "Measures time to all nodes, and cost, of this many purges a second at 5 % loss.")
    var load: Int?

    @Option(help: "With --load: the duration in seconds.")
    var seconds = 2

    @Option(help: "With --load: the number of nodes that issue purges in turn. Default: all.")
    var issuers: Int?

    func validate() throws {
        guard 3...250 ~= nodes else {
            throw ValidationError("--nodes must be 3 to 250, not \(nodes)")
        }
        guard load.map({ 1...100_000 ~= $0 }) ?? true, 1...60 ~= seconds,
            issuers.map({ 1...nodes ~= $0 }) ?? true
        else {
            throw ValidationError(
                "--load must be 1 to 100000, --seconds 1 to 60, --issuers 1 to \(nodes)")
        }
        guard 1...1_000_000 ~= seeds, first < 1 << 62 else {
            throw ValidationError("--seeds must be 1 to 1000000, and --first below 2^62")
        }
    }

    func run() throws {
        let start = ContinuousClock.now
        defer { print("in \(ContinuousClock.now - start)") }
        if let load { return try printLoad(load) }
        if mistakes { return try findMistakes() }
        let outcome = InvalidationCampaign(seeds: first..<first + seeds, nodes: nodes).run()
        print(
            "\(outcome.seeds) seeds of \(nodes) nodes: \(outcome.reads) reads, "
                + "\(outcome.originFetches) fetches, \(outcome.events) events, "
                + "digest \(hexadecimal(outcome.digest))")
        for kind in InvalidationCoverageGoal.allCases {
            print("  \(kind): \(outcome.reached[kind.rawValue])")
        }
        for violation in outcome.violations { print(violation) }
        if !outcome.uncovered.isEmpty { print("never reached: \(outcome.uncovered)") }
        // The rarest case occurs once in some hundred seeds.
        guard outcome.violations.isEmpty, outcome.uncovered.isEmpty || seeds < 1_000 else {
            throw ExitCode.failure
        }
    }

    private func findMistakes() throws {
        var isFound = true
        for mutation in InvalidationMutation.allCases {
            let outcome = InvalidationCampaign(
                seeds: first..<first + seeds, nodes: nodes, mutation: mutation
            ).run()
            if let violation = outcome.violations.first {
                print(
                    "\(mutation.rawValue): found after \(outcome.seeds) seeds: "
                        + "\(violation.invariant)"
                )
            } else {
                print("\(mutation.rawValue): not found in \(outcome.seeds) seeds")
                isFound = false
            }
        }
        if !isFound { throw ExitCode.failure }
    }

    private func printLoad(_ rate: Int) throws {
        for seed in first..<first + seeds {
            var world = InvalidationPropagation(seed: seed, nodes: nodes, loss: 0.05)
            let figures = world.run(rate: rate, seconds: seconds, issuers: issuers ?? nodes)
            guard let figures else {
                print("seed \(seed): not all have come to all")
                throw ExitCode.failure
            }
            print("seed \(seed): \(rate) purges a second for \(seconds) s, \(nodes) nodes")
            print("  applied by all: \(text(figures.untilApplied))")
            print("  confirmed by all: \(text(figures.untilConfirmed))")
            print(
                "  sent by a node: \(text(figures.framesPerSecond)) frames and "
                    + "\(text(figures.bytesPerSecond)) bytes a second")
        }
    }

    private func text(_ intervals: [Interval]) -> String {
        func part(_ share: Double) -> Int64 {
            intervals[Int(Double(intervals.count - 1) * share)].milliseconds
        }
        return "p50 \(part(0.5)) ms, p99 \(part(0.99)) ms, the last after \(part(1)) ms"
    }

    private func text(_ rates: [Double]) -> String {
        let mean = rates.reduce(0, +) / Double(rates.count)
        return "\(Int(mean)) on average, \(Int(rates.max() ?? 0)) at most"
    }
}
