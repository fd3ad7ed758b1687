import Harness
import NIOCore

/// The requests of normal clients.
struct AttackLoads {
    /// The measurements of one slice.
    struct LoadMeasurements {
        /// Requests for an image in memory.
        var hits: ConstantRateLoad.Measurement
        /// Requests for images that are not in memory and whose origin is not attacked.
        var misses: ConstantRateLoad.Measurement
        /// Requests for a page that is not stored and whose origin is attacked.
        var pages: ConstantRateLoad.Measurement
    }

    private let hits: ConstantRateLoad.Handle
    private let misses: ConstantRateLoad.Handle
    private let pages: ConstantRateLoad.Handle

    init(_ testbed: AttackTestbed, on loop: any EventLoop, hits: Int, misses: Int) async throws {
        func load(
            _ perSecond: Int, _ client: String, _ request: @escaping @Sendable (Int) -> [UInt8]
        ) async throws -> ConstantRateLoad.Handle {
            try await ConstantRateLoad.make(
                on: loop, to: testbed.node.port, interval: 1_000_000_000 / UInt64(perSecond),
                connectionsMax: 64, preamble: AttackTestbed.header(of: client), request: request)
        }
        self.hits = try await load(hits, "198.51.100.7") { _ in
            AttackTestbed.request("/hot", host: AttackTestbed.healthySite)
        }
        self.misses = try await load(misses, "198.51.100.8") {
            AttackTestbed.request("/miss-\($0)", host: AttackTestbed.healthySite)
        }
        pages = try await load(misses, "198.51.100.9") { _ in
            AttackTestbed.request("/page", host: AttackTestbed.attackedSite)
        }
    }

    /// Sends requests for `seconds`, and calls `meanwhile` in that time.
    func run<T>(_ seconds: Double, meanwhile: () throws -> T) async throws -> (LoadMeasurements, T)
    {
        let (hits, others) = (hits.run(seconds), misses.run(seconds))
        let pages = pages.run(seconds)
        let made = try meanwhile()
        let seen = LoadMeasurements(
            hits: try await hits.get(), misses: try await others.get(),
            pages: try await pages.get())
        return (seen, made)
    }

    func close() async throws {
        for load in [hits, misses, pages] { try await load.close() }
    }

    /// The measurements by phase.
    struct Slices {
        var quiet: [LoadMeasurements] = []
        /// The phases while another node's attack began and while it lasted.
        var control: (begins: [LoadMeasurements], lasts: [LoadMeasurements]) = ([], [])
        /// The phases while this node's attack began and while it lasted.
        var attacked: (begins: [LoadMeasurements], lasts: [LoadMeasurements]) = ([], [])
    }

    static func report(_ slices: Slices) {
        let kinds: [(String, KeyPath<LoadMeasurements, ConstantRateLoad.Measurement>)] = [
            ("hits", \.hits), ("misses of another site", \.misses),
            ("pages of the attacked site", \.pages),
        ]
        let times = [
            ("quiet", slices.quiet), ("elsewhere, begins", slices.control.begins),
            ("elsewhere, lasts", slices.control.lasts), ("begins", slices.attacked.begins),
            ("lasts", slices.attacked.lasts),
        ]
        for (name, kind) in kinds {
            let figures = times.map { _, slices in SliceStatistics(slices.map { $0[keyPath: kind] })
            }
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
