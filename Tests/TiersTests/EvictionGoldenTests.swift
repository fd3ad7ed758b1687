import Foundation
import Simulation
import Testing
import Trials

/// Exact miss counts: a change of the policy shows here before it shows anywhere else.
@Suite struct EvictionGoldenTests {
    /// The first 17,000 requests of adaptsize_web, a web proxy's trace used by AdaptSize's authors.
    static func excerpt() throws -> EvictionTrace {
        let folder = try #require(Bundle.module.resourceURL)
        return try TraceReader.read(
            folder.appendingPathComponent("Traces/adaptsize_web_17000.csv").path)
    }

    @Test("The excerpt is the one the golden numbers were taken from")
    func excerptIsWhole() throws {
        let trace = try Self.excerpt()
        #expect(trace.name == "adaptsize_web_17000")
        #expect(trace.requests.count == 17_000)
        #expect(trace.sizes.count == 10_091)
        #expect(trace.footprintBytes == 68_061_247)
    }

    @Test(
        "Misses on the excerpt are exactly these",
        arguments: [
            (EvictionKind.fifo, 1.0, 13_231), (.fifo, 5, 12_262),
            (.fifo, 10, 11_771), (.fifo, 50, 10_476),
            (.lru, 1, 13_103), (.lru, 5, 12_015),
            (.lru, 10, 11_578), (.lru, 50, 10_342),
            (.s3fifo, 1, 12_919), (.s3fifo, 5, 11_419),
            (.s3fifo, 10, 11_064), (.s3fifo, 50, 10_295),
            (.nuthatch, 1, 11_935), (.nuthatch, 5, 10_764),
            (.nuthatch, 10, 10_418), (.nuthatch, 50, 10_106),
            (.nuthatchDisk, 1, 12_870), (.nuthatchDisk, 5, 11_337),
            (.nuthatchDisk, 10, 11_005), (.nuthatchDisk, 50, 10_293),
            (.nuthatchBoth, 1, 12_609), (.nuthatchBoth, 5, 11_280),
            (.nuthatchBoth, 10, 10_948), (.nuthatchBoth, 50, 10_254),
        ])
    func goldenMisses(kind: EvictionKind, percent: Double, misses: Int) throws {
        let trace = try Self.excerpt()
        let figures = trace.replay(
            kind, capacityBytes: trace.capacityBytes(percent: percent))
        #expect(figures.misses == misses)
    }

    @Test(
        "Shards cost little: half a point of the object miss ratio",
        arguments: [8, 16], [5.0, 10, 50])
    func shardsCostLittle(shards: Int, percent: Double) throws {
        let trace = try Self.excerpt()
        let capacityBytes = trace.capacityBytes(percent: percent)
        let one = trace.replay(.nuthatch, capacityBytes: capacityBytes)
        let many = trace.replay(.nuthatch, capacityBytes: capacityBytes, shards: shards)
        #expect(many.objectMissRatio <= one.objectMissRatio + 0.005)
    }

    @Test("A log of four segments, the fewest there may be, is a cache still")
    func fewestSegments() throws {
        let trace = try Self.excerpt()
        let figures = trace.replay(
            .nuthatchDisk, capacityBytes: trace.capacityBytes(percent: 50), segments: 4)
        #expect(figures.misses == 10_553)
    }

    @Test("What the log writes is what it takes in and a little more")
    func writtenBytes() throws {
        let trace = try Self.excerpt()
        let figures = trace.replay(
            .nuthatchDisk, capacityBytes: trace.capacityBytes(percent: 5), segments: 16)
        #expect(figures.admittedBytes == 66_359_065)
        #expect(figures.writtenBytes == 70_452_301)
    }

    @Test("With room for everything only first requests miss", arguments: EvictionKind.allCases)
    func coldMissesOnly(kind: EvictionKind) throws {
        let trace = try Self.excerpt()
        // Ten times, for S3-FIFO admits nothing of its small queue's size or more.
        let figures = trace.replay(kind, capacityBytes: trace.footprintBytes * 10, shards: 3)
        #expect(figures.misses == trace.sizes.count)
        #expect(figures.missedBytes == trace.footprintBytes)
    }
}

/// The folder of the whole traces, if this machine has it.
private let sharedTraces: URL? = {
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    let folder = package.deletingLastPathComponent().appendingPathComponent("shared/traces")
    return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
}()

/// The whole traces, where they lie beside the package (`../shared/traces`).
@Suite(.enabled(if: sharedTraces != nil && !Trials.areFew))
struct EvictionWholeTraceTests {
    /// A size and, at it, S3-FIFO's figure and the best known one (libCacheSim), and our misses.
    struct Golden: Sendable {
        let trace: String
        let percent: Double
        let s3fifo: Double
        let best: Double
        let misses: Int
    }

    static let goldens = [
        Golden(trace: "adaptsize_web", percent: 1, s3fifo: 0.7211, best: 0.6758, misses: 44_753),
        Golden(trace: "adaptsize_web", percent: 5, s3fifo: 0.6463, best: 0.6040, misses: 40_184),
        Golden(trace: "adaptsize_web", percent: 10, s3fifo: 0.6225, best: 0.5809, misses: 38_702),
        Golden(trace: "cloudphysics_io", percent: 1, s3fifo: 0.8232, best: 0.8218, misses: 93_366),
        Golden(trace: "cloudphysics_io", percent: 5, s3fifo: 0.8051, best: 0.8031, misses: 90_057),
        Golden(trace: "cloudphysics_io", percent: 10, s3fifo: 0.7418, best: 0.7418, misses: 84_726),
        Golden(
            trace: "cache2k_web12_unit", percent: 1, s3fifo: 0.5900, best: 0.5665, misses: 54_805),
        Golden(
            trace: "cache2k_web12_unit", percent: 5, s3fifo: 0.3519, best: 0.3515, misses: 32_525),
        Golden(
            trace: "cache2k_web12_unit", percent: 10, s3fifo: 0.2775, best: 0.2775, misses: 25_871),
    ]

    @Test("The policy misses exactly this often, within a point of the best", arguments: goldens)
    func wholeTrace(golden: Golden) throws {
        let folder = try #require(sharedTraces)
        let path = folder.appendingPathComponent("\(golden.trace).csv.gz").path
        let trace = try TraceReader.read(path)
        let capacityBytes = trace.capacityBytes(percent: golden.percent)
        let ours = trace.replay(.nuthatch, capacityBytes: capacityBytes)
        #expect(ours.misses == golden.misses)
        #expect(ours.objectMissRatio <= golden.best + 0.01)
        let paper = trace.replay(.s3fifo, capacityBytes: capacityBytes)
        #expect(abs(paper.objectMissRatio - golden.s3fifo) <= 0.000_051)
    }

    /// A size and, at it, the best known byte figure (libCacheSim), and the bytes we miss.
    struct DiskGolden: Sendable {
        let trace: String
        let percent: Double
        let segments: Int
        let best: Double
        let missedBytes: Int
    }

    static let diskGoldens = [
        DiskGolden(
            trace: "adaptsize_web", percent: 1, segments: 16, best: 0.6920, missedBytes: 353_828_357
        ),
        DiskGolden(
            trace: "adaptsize_web", percent: 5, segments: 16, best: 0.6237, missedBytes: 314_753_661
        ),
        DiskGolden(
            trace: "adaptsize_web", percent: 10, segments: 16, best: 0.6054,
            missedBytes: 304_718_274),
        DiskGolden(
            trace: "cloudphysics_io", percent: 1, segments: 64, best: 0.9651,
            missedBytes: 4_408_171_520),
        DiskGolden(
            trace: "cloudphysics_io", percent: 5, segments: 64, best: 0.9349,
            missedBytes: 4_158_788_096),
        DiskGolden(
            trace: "cloudphysics_io", percent: 10, segments: 64, best: 0.8541,
            missedBytes: 3_874_412_544),
        DiskGolden(
            trace: "cache2k_web12_unit", percent: 1, segments: 64, best: 0.5665, missedBytes: 55_078
        ),
        DiskGolden(
            trace: "cache2k_web12_unit", percent: 5, segments: 64, best: 0.3515, missedBytes: 33_412
        ),
        DiskGolden(
            trace: "cache2k_web12_unit", percent: 10, segments: 64, best: 0.2775,
            missedBytes: 26_525),
    ]

    @Test(
        "The disk misses exactly these bytes, within a point of the best", arguments: diskGoldens)
    func wholeTraceOnDisk(golden: DiskGolden) throws {
        let folder = try #require(sharedTraces)
        let path = folder.appendingPathComponent("\(golden.trace).csv.gz").path
        let trace = try TraceReader.read(path)
        let ours = trace.replay(
            .nuthatchDisk, capacityBytes: trace.capacityBytes(percent: golden.percent),
            segments: golden.segments)
        #expect(ours.missedBytes == golden.missedBytes)
        #expect(ours.byteMissRatio <= golden.best + 0.01)
    }
}
