import Harness
import NIOCore

/// What clients ask for that behave.
struct AttackLoads {
    struct Seen {
        /// Of an image in memory.
        var hits: StormLoad.Seen
        /// Of images that are not in memory, whose origin is not attacked.
        var misses: StormLoad.Seen
        /// Of a page that is not stored, whose origin is attacked.
        var pages: StormLoad.Seen
    }

    private let hits: StormLoad.Bound
    private let misses: StormLoad.Bound
    private let pages: StormLoad.Bound

    init(_ stage: AttackStage, on loop: any EventLoop, hits: Int, misses: Int) async throws {
        func load(
            _ perSecond: Int, _ client: String, _ request: @escaping @Sendable (Int) -> [UInt8]
        ) async throws -> StormLoad.Bound {
            try await StormLoad.bound(
                on: loop, to: stage.node.port, interval: 1_000_000_000 / UInt64(perSecond),
                connectionsMax: 64, greeting: AttackStage.header(of: client), request: request)
        }
        self.hits = try await load(hits, "198.51.100.7") { _ in
            AttackStage.request("/hot", host: AttackStage.good)
        }
        self.misses = try await load(misses, "198.51.100.8") {
            AttackStage.request("/miss-\($0)", host: AttackStage.good)
        }
        pages = try await load(misses, "198.51.100.9") { _ in
            AttackStage.request("/page", host: AttackStage.bad)
        }
    }

    /// Asks for so long; `meanwhile` is done while that lasts.
    func run<T>(_ seconds: Double, meanwhile: () throws -> T) async throws -> (Seen, T) {
        let (hits, others) = (hits.run(seconds), misses.run(seconds))
        let pages = pages.run(seconds)
        let made = try meanwhile()
        let seen = Seen(
            hits: try await hits.get(), misses: try await others.get(),
            pages: try await pages.get())
        return (seen, made)
    }

    func close() async throws {
        for load in [hits, misses, pages] { try await load.close() }
    }

    /// What was seen, by when it was.
    struct Slices {
        var quiet: [Seen] = []
        /// While another node's attack began, and while it went on.
        var elsewhere: (begins: [Seen], lasts: [Seen]) = ([], [])
        /// The same of this node.
        var attacked: (begins: [Seen], lasts: [Seen]) = ([], [])
    }

    static func report(_ slices: Slices) {
        let kinds: [(String, KeyPath<Seen, StormLoad.Seen>)] = [
            ("hits", \.hits), ("misses of another site", \.misses),
            ("pages of the attacked site", \.pages),
        ]
        let times = [
            ("quiet", slices.quiet), ("elsewhere, begins", slices.elsewhere.begins),
            ("elsewhere, lasts", slices.elsewhere.lasts), ("begins", slices.attacked.begins),
            ("lasts", slices.attacked.lasts),
        ]
        for (name, kind) in kinds {
            let figures = times.map { _, slices in StormFigures(slices.map { $0[keyPath: kind] }) }
            for (time, seen) in zip(times, figures) { print("  \(name), \(time.0): \(seen.text)") }
            for (when, own, other) in [("begins", 3, 1), ("lasts", 4, 2)] {
                let p99 = (
                    figures[own].ratio(to: figures[0], 0.99),
                    figures[own].ratio(to: figures[other], 0.99)
                )
                print("  \(name), \(when): p99 \(p99.0) of quiet, \(p99.1) of elsewhere")
            }
        }
    }
}
