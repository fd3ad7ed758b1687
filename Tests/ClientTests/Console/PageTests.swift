import Admin
import Client
import Testing

@Suite("Pages of the command line")
struct PageTests {
    private func text(_ lines: [TextLine]) -> String {
        lines.map { $0.rendered(isColoured: false) }.joined(separator: "\n")
    }

    private static let status = {
        var document = StatusDocument()
        (document.node, document.version, document.role) = (Reports.id(1), "1.2.3", "purge")
        (document.uptimeMilliseconds, document.readiness) = (93_784_000, "ready")
        document.fencedMilliseconds = 12_000
        (document.memory.usedBytes, document.memory.limitBytes) = (1 << 28, 1 << 29)
        document.memory.entries = 1
        var cluster = StatusDocument.Cluster()
        (cluster.aliveCount, cluster.voterCount, cluster.offersPending) = (2, 3, 4)
        document.cluster = cluster
        (document.invalidations.applied, document.invalidations.receiptsPending) = (1_200, 1)
        document.sites = ["www.example.com", "*"]
        return document
    }()

    private let members = [
        Reports.member(1, isSelf: true), Reports.member(2), Reports.member(3, "dead"),
    ]

    @Test("The status of one node")
    func one() {
        let statistics = Reports.statistics(
            at: 93_784_000, hits: 987, misses: 13, members: members)
        let report = NodeReport(Self.status, statistics)
        let lines = report.lines(at: "127.0.0.1:8081", columnsMax: 80)
        #expect(
            text(lines) == """
                ready: no fault is known

                node      11111111111111111111111111111111 at 127.0.0.1:8081
                version   1.2.3, up 1d 2h
                health    ready, fenced for 12s
                memory    256 MiB of 512 MiB (50%), 1 entry
                disk      none
                requests  1,000 since the start; hit ratio 98.7% of requests, 98.7% of bytes
                origin    13 fetches; 130 KiB received of 9.8 MiB sent: 98.7% saved
                cluster   2 alive, 1 dead; 3 voters; owns 20.0% of the keys; 4 images to hand off
                log       1,200 records applied; 1 purge not confirmed by all
                sites     www.example.com, *
                role      purge

                   MEMBER    STATE  REQUESTS  HITS  5XX  FAILED  OF  ADMIN
                *  11111111  alive         –     –    –       –   –  10.0.0.1:8082
                   22222222  alive         –     –    –       –   –  10.0.0.2:8082
                   33333333  dead          –     –    –       –   –  10.0.0.3:8082
                """)
    }

    @Test("The status begins with what is wrong, and what to do")
    func failing() {
        var statistics = Reports.statistics(at: 93_784_000, hits: 987, misses: 13)
        (statistics.responses.successful, statistics.responses.serverErrors) = (990, 10)
        statistics.errors.refused = NamedCounts([("fills", 2), ("queue", 0)])
        statistics.errors.origin = NamedCounts([("timeout", 3), ("connect", 12)])
        statistics.cluster = nil
        var status = Self.status
        (status.cluster, status.fencedMilliseconds) = (nil, nil)
        var report = NodeReport(
            status, statistics, conditions: ConditionsDocument(Reports.conditions))
        report.origins = Reports.origins
        report.sites = Reports.sites
        report.certificates = Reports.certificates
        let lines = report.lines(at: "127.0.0.1:8081", columnsMax: 80)
        #expect(
            text(lines) == """
                critical: http://a.example:80 is down: 12 of 13 fetches failed, and its circuit
                          is open.
                          Check that it runs, and that this node reaches it. — for 2m 5s; alert
                          NuthatchOriginLeftAlone
                warning:  a.pem expires in 12 days.
                          Renew it, and send the node SIGHUP. — for 18d

                node      11111111111111111111111111111111 at 127.0.0.1:8081
                version   1.2.3, up 1d 2h
                health    ready
                memory    256 MiB of 512 MiB (50%), 1 entry
                disk      none
                requests  1,000 since the start; hit ratio 98.7% of requests, 98.7% of bytes
                origin    13 fetches; 130 KiB received of 9.8 MiB sent: 98.7% saved
                cluster   none
                log       1,200 records applied; 1 purge not confirmed by all
                sites     www.example.com, *
                role      purge
                status    2xx 990 (99.0%), 5xx 10 (1.0%)
                errors    refused: fills 2; failed fetches: connect 12, timeout 3
                certs     a.example 12 days, b.example 80 days

                ORIGIN               HEALTH  CIRCUIT  QUEUE  CONNS  FAILED  OF  RECEIVED
                http://a.example:80  down    open 8s      4      0      12  13       0 B
                  last error 3s ago: Connection refused; connect 11, timeout 1
                http://b.example:80  ok      closed       0      2       0  40   391 KiB

                SITE             HEALTH  REQUESTS   HITS   4XX   5XX      SENT  FROM ORIGIN
                www.example.com  down       1,000  98.7%  1.0%  4.0%  97.6 MiB        1 MiB
                  last error 3s ago: Connection refused
                """)
        #expect(lines.allSatisfy { $0.columns <= 80 })
    }

    @Test("A condition that several nodes report is one, and the worst is the headline")
    func conditions() {
        let unanswered = Condition(unansweredBy: "c:8081", "did not respond within 3s")
        let report = ConditionReport([
            ("a", Reports.conditions), ("b", Array(Reports.conditions.prefix(1))),
            ("c:8081", [unanswered]),
        ])
        #expect(report.state == .critical)
        #expect(
            report.headline.text
                == "critical: http://a.example:80 is down: 12 of 13 fetches failed, "
                + "and its circuit is open. (a, b) (and 2 more)")
        #expect(
            report.furtherLines(5).map(\.text) == [
                "critical: c:8081 did not respond within 3s",
                "warning:  a.pem expires in 12 days. (a)",
            ])
        #expect(report.furtherLines(1).map(\.text) == ["and 2 more: v"])
        #expect(ConditionReport([("a", [])]).headline.text == "ready: no fault is known")
    }

    @Test("A node that reports no conditions is judged by its fence, disk and readiness")
    func older() {
        var statistics = Reports.statistics(at: 1, fenced: 4_000)
        statistics.disk?.isUp = false
        statistics.readiness = "joining"
        #expect(statistics.basicConditions.map(\.name) == ["fenced", "disk-down", "joining"])
        #expect(ConditionReport([("a", statistics.basicConditions)]).state == .critical)
        #expect(Reports.statistics(at: 1).basicConditions == [])
    }

    @Test("Several nodes make a table, with the reason for each that does not answer")
    func several() {
        let statistics = Reports.statistics(
            at: 1, hits: 987, misses: 13, members: members)
        let lines = StatusTable.lines(
            [
                ("a:8081", .received(NodeReport(Self.status, statistics))),
                ("b:8081", .failed("Connection refused")),
            ], columnsMax: nil)
        let wanted = """
            critical: b:8081 Connection refused
                      See whether it runs, and whether its admin port can be reached from here.

            AT      NODE      HEALTH                 ALIVE  MEM  DISK  REQUESTS   HITS  5XX  UP
            a:8081  11111111  ready, fenced for 12s  2/3    50%     –     1,000  98.7%    –  1d
            b:8081  –         Connection refused     –        –     –         –      –    –   –
            """
        #expect(text(lines) == wanted)
    }

    @Test("A receipt shows who has confirmed, and the time bound")
    func receipt() {
        let receipt = Reports.receipt(1, held: 9, confirmed: 1, of: 2, tag: "t\u{1B}[2J")
        #expect(
            text(receipt.lines(columnsMax: nil)) == """
                hard purge deploy-1  receipt 11111111111111111111111111111111-1
                tag t\\u{1B}[2J
                MEMBER                            STATUS        AFTER
                11111111111111111111111111111111  confirmed       3ms
                22222222222222222222222222222222  unreachable  for 8s
                1 of 2 confirmed; 1 unreachable; no node serves the purged entries after 4s
                """)
        #expect(receipt.isSettled)
        let whole = Reports.receipt(1, held: 9, confirmed: 2, of: 2, tag: "t")
        #expect(whole.summary.text == "confirmed by all 2 within 3ms")
        #expect(whole.progress(columnsMax: 60).text.hasSuffix("100%  2/2 confirmed"))
    }

    @Test("An entry shows its reuse forecast and the reason")
    func entry() {
        var variant = EntryDocument.Variant()
        (variant.key, variant.tier) = ("http://a.example/b\n1\u{1F}\u{FFFD}", "memory")
        (variant.isAlsoOnDisk, variant.memoryAccesses) = (true, 50)
        (variant.contentType, variant.bodyBytes) = ("image/png", 2048)
        (variant.ageMilliseconds, variant.remainingFreshnessMilliseconds) = (61_000, -5_000)
        (variant.decision, variant.reason) = ("revalidate", "stale for 5 s")
        variant.invalidationVersion = "1.2"
        (variant.accesses, variant.lastAccessMillisecondsAgo) = (3, 2_000)
        variant.tags = ["one", "two"]
        variant.headerFields = [["content-type", "image/png"]]
        var document = EntryDocument()
        (document.url, document.key) = ("http://A.example/b", "http://a.example/b")
        (document.variants, document.owners) = ([variant], [Reports.id(1), Reports.id(2)])
        #expect(
            text(document.lines(columnsMax: nil)) == """
                url     http://A.example/b
                stored  http://a.example/b
                owners  11111111, 22222222  not this node

                now       revalidate: stale for 5 s
                tier      memory and disk
                response  200 image/png, 2 KiB
                age       1m 1s; stale for 5s
                use       50 accesses in memory, estimated; 3 accesses on disk, last 2s ago
                tags      one two
                version   1.2
                """)
        #expect(variant.fieldLines.map(\.text) == ["content-type: image/png"])
    }

    @Test("A response is shown in one line or field by field")
    func answer() {
        let summary = ResponseSummary(
            status: 200,
            fields: [
                ("Content-Type", "image/png"), ("Cache-Status", "nuthatch; hit; detail=memory"),
                ("Content-Length", "2048"),
            ], bodyBytes: nil, tookMilliseconds: 3)
        #expect(
            text(summary.lines) == """
                status  200
                cache   nuthatch; hit; detail=memory
                type    image/png
                size    2 KiB
                time    3ms

                Content-Type: image/png
                Cache-Status: nuthatch; hit; detail=memory
                Content-Length: 2048
                """)
        #expect(
            summary.line(savedAs: "a.png").text
                == "a.png: 2 KiB image/png, nuthatch; hit; detail=memory, 3ms")
    }

    @Test("A prefetch shows its progress, its results and its failures")
    func prefetch() {
        var document = PrefetchDocument(prefetch: "p1", source: .urls, state: .running)
        (document.urlsTotal, document.urlsDone, document.urlsFetched) = (2000, 500, 499)
        (document.urlsFailed, document.bodyBytes) = (1, 5 << 20)
        document.elapsedMilliseconds = 10_000
        #expect(
            document.progress("prefetching", columnsMax: 90).text.hasSuffix(
                "25%  500 of 2,000, 5 MiB, 1 failed, 30s left"))
        document.state = .done
        document.failures = [.init(url: "http://a.example/x", reason: "it responded with 404")]
        #expect(
            text(document.lines(columnsMax: nil)) == """
                done  2,000 URLs: 499 fetched, 0 already cached, 1 failed; 5 MiB in 10s
                NOT FETCHED         WHY
                http://a.example/x  it responded with 404
                """)
    }

    @Test("URLs are split into batches that fit into a request, and none is lost")
    func batches() {
        #expect(PrefetchRequest.batches([]) == [])
        let many = (0..<25_000).map { "http://a.example/\($0)" }
        let parts = PrefetchRequest.batches(many)
        #expect(parts.map(\.count) == [10_000, 10_000, 5_000] && parts.flatMap(\.self) == many)
        let long = (0..<300).map { "http://a.example/\(String(repeating: "x", count: 8_000))\($0)" }
        let cut = PrefetchRequest.batches(long)
        #expect(cut.flatMap(\.self) == long)
        for part in cut {
            let body: JSON = ["urls": JSON(part)]
            #expect(body.compactText.utf8.count <= PrefetchRequest.bodyBytesMax)
        }
    }

    @Test("A drain is over when nothing is left twice in succession")
    func drain() {
        func report(_ change: (inout StatisticsDocument) -> Void) -> StatisticsDocument {
            var report = Reports.statistics(
                at: 1, members: [Reports.member(1, isSelf: true)])
            report.readiness = "draining"
            report.members[0].primaryShare = 0
            change(&report)
            return report
        }
        var progress = DrainProgress()
        progress.update(report { $0.members[0].primaryShare = 0.2 })
        progress.update(report { $0.members[0].primaryShare = 0.2 })
        #expect(!progress.isFinished)
        for left: UInt64 in [80, 20] {
            progress.update(
                report {
                    $0.cluster?.isHandingOff = true
                    $0.cluster?.offersPending = left
                })
        }
        #expect(progress.line(columnsMax: 80).text.hasSuffix("75%  20 images left"))
        progress.update(report { _ in })
        #expect(!progress.isFinished)
        progress.update(report { _ in })
        #expect(progress.isFinished && progress.offersLeft == 0)
    }
}
