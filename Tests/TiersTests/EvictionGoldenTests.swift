import Foundation
import Simulation
import Testing
import Trials

/// Exact miss counts, which show every change of the policy.
@Suite struct EvictionGoldenTests {
    /// The first 17,000 requests of adaptsize_web, a web proxy's trace used by AdaptSize's authors.
    private let trace: EvictionTrace

    init() throws {
        let folder = try #require(Bundle.module.resourceURL)
        trace = try TraceReader.read(
            folder.appendingPathComponent("Traces/adaptsize_web_17000.csv").path)
    }

    @Test("The excerpt is the one from which the golden numbers were taken")
    func excerptIsWhole() {
        #expect(trace.name == "adaptsize_web_17000")
        #expect(trace.requests.count == 17_000)
        #expect(trace.sizes.count == 10_091)
        #expect(trace.footprintBytes == 68_061_247)
    }

    @Test(
        "The miss counts on the excerpt are exact",
        arguments: [
            (EvictionKind.fifo, 1.0, 13_231), (.fifo, 5, 12_262),
            (.fifo, 10, 11_771), (.fifo, 50, 10_476),
            (.lru, 1, 13_103), (.lru, 5, 12_015),
            (.lru, 10, 11_578), (.lru, 50, 10_342),
            (.s3fifo, 1, 12_919), (.s3fifo, 5, 11_419),
            (.s3fifo, 10, 11_064), (.s3fifo, 50, 10_295),
            (.nuthatch, 1, 11_864), (.nuthatch, 5, 10_734),
            (.nuthatch, 10, 10_415), (.nuthatch, 50, 10_106),
            (.nuthatchDisk, 1, 12_870), (.nuthatchDisk, 5, 11_337),
            (.nuthatchDisk, 10, 11_005), (.nuthatchDisk, 50, 10_293),
            (.nuthatchBoth, 1, 12_609), (.nuthatchBoth, 5, 11_280),
            (.nuthatchBoth, 10, 10_948), (.nuthatchBoth, 50, 10_254),
        ])
    func goldenMisses(kind: EvictionKind, percent: Double, misses: Int) {
        let figures = trace.replay(
            kind, capacityBytes: trace.capacityBytes(percent: percent), segments: 64)
        #expect(figures.misses == misses)
    }

    @Test(
        "Sharding costs at most half a point of the object miss ratio",
        arguments: [8, 16], [5.0, 10, 50])
    func shardsCostLittle(shards: Int, percent: Double) {
        let capacityBytes = trace.capacityBytes(percent: percent)
        let one = trace.replay(.nuthatch, capacityBytes: capacityBytes)
        let many = trace.replay(.nuthatch, capacityBytes: capacityBytes, shards: shards)
        #expect(many.objectMissRatio <= one.objectMissRatio + 0.005)
    }

    @Test("A log of four segments, the minimum, still works as a cache")
    func fewestSegments() {
        let figures = trace.replay(
            .nuthatchDisk, capacityBytes: trace.capacityBytes(percent: 50), segments: 4)
        #expect(figures.misses == 10_553)
    }

    @Test("The log writes little more than it admits")
    func writtenBytes() {
        let figures = trace.replay(
            .nuthatchDisk, capacityBytes: trace.capacityBytes(percent: 5), segments: 16)
        #expect(figures.admittedBytes == 66_359_065)
        #expect(figures.writtenBytes == 70_452_301)
    }

    @Test(
        "With capacity for everything, only first requests miss", arguments: EvictionKind.allCases)
    func coldMissesOnly(kind: EvictionKind) {
        // Ten times, because S3-FIFO admits no object as large as its small queue.
        let figures = trace.replay(kind, capacityBytes: trace.footprintBytes * 10, shards: 3)
        #expect(figures.misses == trace.sizes.count)
        #expect(figures.missedBytes == trace.footprintBytes)
    }
}

/// The folder of the whole traces, if present.
private let sharedTraces: URL? = {
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    let folder = package.deletingLastPathComponent().appendingPathComponent("shared/traces")
    return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
}()

/// The whole traces, if they are beside the package (`../shared/traces`).
@Suite(.enabled(if: sharedTraces != nil && !Trials.isReduced))
struct EvictionWholeTraceTests {
    private static func read(_ name: String) throws -> EvictionTrace {
        let folder = try #require(sharedTraces)
        return try TraceReader.read(folder.appendingPathComponent("\(name).csv.gz").path)
    }

    /// Trace, capacity, S3-FIFO's miss ratio, the best known one (libCacheSim), and our misses.
    private static let goldens: [(String, Double, Double, Double, Int)] = [
        ("adaptsize_web", 1, 0.7211, 0.6758, 44_285),
        ("adaptsize_web", 5, 0.6463, 0.6040, 40_177),
        ("adaptsize_web", 10, 0.6225, 0.5809, 38_701),
        ("cloudphysics_io", 1, 0.8232, 0.8218, 93_366),
        ("cloudphysics_io", 5, 0.8051, 0.8031, 90_057),
        ("cloudphysics_io", 10, 0.7418, 0.7418, 84_726),
        ("cache2k_web12_unit", 1, 0.5900, 0.5665, 54_805),
        ("cache2k_web12_unit", 5, 0.3519, 0.3515, 32_525),
        ("cache2k_web12_unit", 10, 0.2775, 0.2775, 25_871),
    ]

    @Test("The policy's misses are exact and within a point of the best known", arguments: goldens)
    func wholeTrace(
        name: String, percent: Double, s3fifo: Double, best: Double, misses: Int
    ) throws {
        let trace = try Self.read(name)
        let capacityBytes = trace.capacityBytes(percent: percent)
        let ours = trace.replay(.nuthatch, capacityBytes: capacityBytes)
        #expect(ours.misses == misses)
        #expect(ours.objectMissRatio <= best + 0.01)
        let paper = trace.replay(.s3fifo, capacityBytes: capacityBytes)
        #expect(abs(paper.objectMissRatio - s3fifo) <= 0.000_051)
    }

    /// Trace, capacity, segments, the best known byte miss ratio with them (libCacheSim), and our
    /// missed bytes.
    private static let diskGoldens: [(String, Double, Int, Double, Int)] = [
        ("adaptsize_web", 1, 16, 0.6920, 353_828_357),
        ("adaptsize_web", 5, 16, 0.6237, 314_753_661),
        ("adaptsize_web", 10, 16, 0.6054, 304_718_274),
        ("cloudphysics_io", 1, 64, 0.9651, 4_408_171_520),
        ("cloudphysics_io", 5, 64, 0.9349, 4_158_788_096),
        ("cloudphysics_io", 10, 64, 0.8541, 3_874_412_544),
        ("cache2k_web12_unit", 1, 64, 0.5665, 55_078),
        ("cache2k_web12_unit", 5, 64, 0.3515, 33_412),
        ("cache2k_web12_unit", 10, 64, 0.2775, 26_525),
    ]

    @Test(
        "Missed bytes on disk are exact and within a point of the best", arguments: diskGoldens)
    func wholeTraceOnDisk(
        name: String, percent: Double, segments: Int, best: Double, missedBytes: Int
    ) throws {
        let trace = try Self.read(name)
        let ours = trace.replay(
            .nuthatchDisk, capacityBytes: trace.capacityBytes(percent: percent),
            segments: segments)
        #expect(ours.missedBytes == missedBytes)
        #expect(ours.byteMissRatio <= best + 0.01)
    }
}
