import Admin
import Client
import Foundation
import Ground
import HTTPRules
import Telemetry
import Testing

@Suite("Decoding the admin port's documents")
struct ReportTests {
    private static let id = String(repeating: "0a", count: 16)

    private func read<Report: Decodable>(_ document: JSON) throws -> Report {
        try JSONDecoder().decode(Report.self, from: Data(document.formattedBytes))
    }

    @Test("Status")
    func status() throws {
        let node = NodeCounters()
        node.set(.memoryUsedBytes, to: 30)
        node.set(.memoryLimitBytes, to: 40)
        node.set(.offersQueued, to: 2)
        node.set(.offersUnanswered, to: 3)
        node.set(.handoffActive, to: 1)
        for isWhole in [true, false] {
            let report: StatusReport = try read(
                StatusDocument(
                    node: Self.id, process: Self.id, version: "1.0.0", uptimeMilliseconds: 5,
                    role: .purge, readiness: .draining, fencedMilliseconds: isWhole ? 7 : nil,
                    snapshot: MetricsSnapshot(loops: [], node: node), hasDisk: isWhole,
                    isInCluster: isWhole, unreachableSeeds: [], receiptsPending: 2,
                    sites: ["a.example"]
                ).json)
            #expect(report.node == Self.id && report.role == "purge" && report.version == "1.0.0")
            #expect(report.readiness == "draining" && report.isFenced == isWhole)
            #expect(report.fencedMilliseconds == (isWhole ? 7 : nil))
            #expect(report.memory.share == 0.75 && report.memory.pinnedBytes == 0)
            #expect((report.disk?.isUp == false) == isWhole && (report.cluster != nil) == isWhole)
            #expect(report.cluster.map { $0.offersPending == 5 && $0.isHandingOff } ?? !isWhole)
            #expect(report.invalidations.receiptsPending == 2 && report.sites == ["a.example"])
        }
    }

    @Test("Statistics and derived figures")
    func statistics() throws {
        let loop = OutcomeHistograms()
        for _ in 0..<8 { loop.add(.hit, nanoseconds: 60_000, bodyBytes: 10) }
        loop.add(.miss, nanoseconds: 60_000_000_000, bodyBytes: 20)
        loop.add(.generated, nanoseconds: 1, bodyBytes: 5)
        let report: StatisticsReport = try read(
            StatisticsDocument(
                uptimeMilliseconds: 5,
                snapshot: MetricsSnapshot(loops: [], node: NodeCounters(), outcomes: [loop]),
                readiness: .ready, fencedMilliseconds: nil, hasDisk: false, isInCluster: false,
                receiptsPending: 0, members: []
            ).json)
        #expect(report.requests.hits == 8 && report.requests.cacheable == 9)
        #expect(report.requests.all == 10 && report.bytes.hitRatio == 0.8)
        let buckets = report.latency.all
        #expect(buckets.reduce(0, +) == 9 && report.latency.bounds == LatencyBuckets.bounds)
        let middle = LatencyHistogram.quantile(0.5, of: buckets, bounds: report.latency.bounds)
        #expect(middle.map { (50...100).contains($0) } == true)
        #expect(
            LatencyHistogram.quantile(1, of: buckets, bounds: LatencyBuckets.bounds) == .infinity)
        #expect(LatencyHistogram.quantile(0.5, of: [0, 0], bounds: [1]) == nil)
    }

    @Test("Quantiles rise with the share and lie in the right bucket")
    func quantiles() throws {
        let buckets: [UInt64] = [3, 0, 5, 1, 0]
        var last = 0.0
        for step in 0...100 {
            let value = try #require(
                LatencyHistogram.quantile(
                    Double(step) / 100, of: buckets, bounds: [10, 20, 50, 100]))
            #expect(value >= last)
            last = value
        }
        #expect(last == 100)
    }

    @Test("Receipts")
    func receipts() throws {
        let name = try #require(ReceiptID("\(Self.id)-3"[...]))
        let document = ReceiptDocument(
            name, id: Array("deploy".utf8), isSoft: true,
            targets: [.tag(Array("t".utf8)), .everything], issuer: nil, observer: "d",
            ageMilliseconds: 9,
            majorityMilliseconds: 4, millisecondsUntilBounded: 100,
            members: [
                .init(node: "a", .confirmed(elapsedMilliseconds: 4)), .init(node: "b", .pending),
                .init(node: "c", .unreachable(sinceMillisecondsAgo: 70)),
            ])
        let report: ReceiptReport = try read(document.json)
        #expect(report.receipt == "\(Self.id)-3" && report.id == "deploy" && report.mode == "soft")
        #expect(report.confirmed == 1 && report.pending == 1 && report.unreachable == 1)
        #expect(report.members.map(\.state) == ["confirmed", "pending", "unreachable"])
        #expect(report.members[0].elapsedMilliseconds == 4)
        #expect(report.members[2].unreachableMilliseconds == 70)
        #expect(report.targets.map(\.summary) == ["tag t", "everything"])
        #expect(!report.isSettled && report.millisecondsUntilBounded == 100)
        let page: ReceiptReport.Page = try read(ReceiptDocument.json([document]))
        #expect(page.purges == [report])
    }

    @Test("Entries and the hottest ones")
    func entries() throws {
        var variant = EntryDocument.Variant(key: "http://a.example/b", name: "f00d")
        (variant.isInMemory, variant.isOnDisk) = (true, true)
        (variant.entityTag, variant.accesses, variant.decision) = ("\"e\"", 3, .refetch)
        variant.fields = [("content-type", "image/png")]
        let report: EntryReport = try read(
            EntryDocument(
                url: "u", key: "k", variants: [variant], owners: [Self.id], isOwner: true
            ).json)
        let read = try #require(report.variants.first)
        #expect(report.isOwner && report.owners == [Self.id] && report.key == "k")
        #expect(read.tier == "memory" && read.isAlsoOnDisk && read.entityTag == "\"e\"")
        #expect(read.accesses == 3 && read.decision == "refetch")
        #expect(read.fieldLines.map(\.text) == ["content-type: image/png"])
        let hot: HotReport = try self.read(
            HotEntriesDocument(rows: [
                .init(key: "k", url: "u", contentType: "image/png", bodyBytes: 3, accesses: 9)
            ]).json)
        #expect(hot.entries.map(\.accesses) == [9] && hot.entries[0].bodyBytes == 3)
    }
}
