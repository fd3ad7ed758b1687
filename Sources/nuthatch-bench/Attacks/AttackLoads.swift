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
                on: loop, to: stage.node.port, perSecond: perSecond, connectionsMax: 64,
                greeting: AttackStage.header(of: client), request: request)
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

    func run(_ seconds: Double) async throws -> Seen {
        let (others, pages) = (misses.run(seconds), pages.run(seconds))
        return Seen(
            hits: try await hits.run(seconds).get(), misses: try await others.get(),
            pages: try await pages.get())
    }

    func close() async throws {
        for load in [hits, misses, pages] { try await load.close() }
    }

    static func report(_ quiet: [Seen], _ aside: [Seen], _ attacked: [Seen]) {
        let kinds: [(String, KeyPath<Seen, StormLoad.Seen>)] = [
            ("hits", \.hits), ("misses of another site", \.misses),
            ("pages of the attacked site", \.pages),
        ]
        for (name, kind) in kinds {
            let figures = [quiet, aside, attacked].map { slices in
                StormFigures(slices.map { $0[keyPath: kind] })
            }
            for (when, seen) in zip(["quiet", "elsewhere", "attacked"], figures) {
                print("  \(name), \(when): \(seen.text)")
            }
            let ratios = [0.5, 0.99].map { part in
                [figures[0], figures[1]].map { figures[2].ratio(to: $0, part) }
            }
            print(
                "  \(name): p50 \(ratios[0][0]) of quiet, \(ratios[0][1]) of elsewhere; "
                    + "p99 \(ratios[1][0]) of quiet, \(ratios[1][1]) of elsewhere")
        }
    }
}
