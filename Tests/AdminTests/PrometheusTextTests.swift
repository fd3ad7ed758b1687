import Admin
import Telemetry
import Testing

@Suite("Metrics as Prometheus text")
struct PrometheusTextTests {
    private let lines: [String]

    init() {
        let loops = [LoopCounters(), LoopCounters()]
        loops[0].add(.requestsHit, 40)
        loops[1].add(.requestsHit, 2)
        loops[1].add(.connectionsOpen)
        let node = NodeCounters()
        node.set(.memoryLimitBytes, to: 1 << 40)
        let text = PrometheusText.render(Snapshot(loops: loops, node: node))
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test("a family is its help, its type and one line per member")
    func familyIsHelpTypeAndSeries() throws {
        let start = try #require(lines.firstIndex { $0.hasPrefix("# HELP nuthatch_requests_") })
        #expect(
            lines[start + 1...start + 10] == [
                "# TYPE nuthatch_requests_total counter",
                "nuthatch_requests_total{cache=\"hit\"} 42",
                "nuthatch_requests_total{cache=\"disk\"} 0",
                "nuthatch_requests_total{cache=\"revalidated\"} 0",
                "nuthatch_requests_total{cache=\"miss\"} 0",
                "nuthatch_requests_total{cache=\"peer\"} 0",
                "nuthatch_requests_total{cache=\"collapsed\"} 0",
                "nuthatch_requests_total{cache=\"stale\"} 0",
                "nuthatch_requests_total{cache=\"passed\"} 0",
                "nuthatch_requests_total{cache=\"none\"} 0",
            ])
    }

    @Test("a family of one member has no label")
    func singleMemberHasNoLabel() {
        #expect(lines.contains("# TYPE nuthatch_connections_open gauge"))
        #expect(lines.contains("nuthatch_connections_open 1"))
        #expect(lines.contains("nuthatch_memory_limit_bytes 1099511627776"))
    }

    @Test("every line ends in a line feed and is a comment or a name and a number")
    func everyLineHasTheFormat() throws {
        #expect(lines.last?.isEmpty == true)
        let series =
            /[a-z][a-z0-9_]*(\{[a-z]+="[a-z0-9_]+"(,le="([0-9.]+|\+Inf)")?\})? [0-9]+(\.[0-9]+)?/
        let comment = /# (HELP [a-z0-9_]+ [^\n]+|TYPE [a-z0-9_]+ (counter|gauge|histogram))/
        for line in lines.dropLast() {
            let isWellFormed =
                try series.wholeMatch(in: line) != nil || comment.wholeMatch(in: line) != nil
            #expect(isWellFormed, "\(line)")
        }
    }

    @Test("a histogram's buckets add up, in seconds")
    func histogram() {
        let loop = LoopOutcomes()
        loop.add(.disk, nanoseconds: 60_000, bodyBytes: 5)
        loop.add(.disk, nanoseconds: 1_500_000_000, bodyBytes: 6)
        loop.add(.disk, nanoseconds: 60_000_000_000, bodyBytes: 7)
        let text = PrometheusText.render(
            Snapshot(loops: [], node: NodeCounters(), outcomes: [loop]))
        let name = "nuthatch_request_duration_seconds"
        for line in [
            "nuthatch_body_bytes_total{cache=\"disk\"} 18", "# TYPE \(name) histogram",
            "\(name)_bucket{cache=\"disk\",le=\"0.00005\"} 0",
            "\(name)_bucket{cache=\"disk\",le=\"0.0001\"} 1",
            "\(name)_bucket{cache=\"disk\",le=\"1\"} 1",
            "\(name)_bucket{cache=\"disk\",le=\"2\"} 2",
            "\(name)_bucket{cache=\"disk\",le=\"+Inf\"} 3", "\(name)_sum{cache=\"disk\"} 61.50006",
            "\(name)_count{cache=\"disk\"} 3", "\(name)_count{cache=\"peer\"} 0",
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line)")
        }
    }

    @Test("sites have series of their own, named by their hosts")
    func sitesAreLabelled() throws {
        let counters = SiteCounters()
        counters.add(.hits, 7)
        counters.add(.originBytes, 10)
        let sites = [
            SiteFigures(name: "a.example:8080", counters: []),
            SiteFigures(name: "*", counters: [counters]),
        ]
        let text = PrometheusText.render(
            Snapshot(loops: [], node: NodeCounters(), sites: sites))
        let lines = text.split(separator: "\n").map(String.init)
        let start = try #require(lines.firstIndex { $0.hasPrefix("# HELP nuthatch_site_requ") })
        #expect(
            lines[start + 1...start + 3] == [
                "# TYPE nuthatch_site_requests_total counter",
                "nuthatch_site_requests_total{site=\"a.example:8080\",cache=\"hit\"} 0",
                "nuthatch_site_requests_total{site=\"a.example:8080\",cache=\"stale\"} 0",
            ])
        #expect(lines.contains("nuthatch_site_requests_total{site=\"*\",cache=\"hit\"} 7"))
        #expect(lines.last == "nuthatch_site_origin_received_bytes_total{site=\"*\"} 10")
    }

    @Test("a help text's backslashes and line feeds are escaped")
    func helpIsEscaped() {
        #expect(PrometheusText.escapeHelp("a\\b\nc\"d") == "a\\\\b\\nc\"d")
    }
}
