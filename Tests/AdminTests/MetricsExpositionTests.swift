import Admin
import Telemetry
import Testing

@Suite("The exposition of metrics")
struct MetricsExpositionTests {
    /// A snapshot of a node with two loops, two sites and one other member.
    private let snapshot: MetricsSnapshot

    init() {
        let loops = [EventLoopCounters(), EventLoopCounters()]
        loops[0].add(.requestsHit, 40)
        loops[1].add(.requestsHit, 2)
        loops[1].add(.connectionsOpen)
        loops[1].add(.requestsMalformed, 5)
        loops[0].add(.timeoutsHead, 3)
        let node = NodeCounters()
        node.set(.memoryLimitBytes, to: 1 << 40)
        node.set(.memoryStalledPermille, to: 70)
        let outcomes = OutcomeHistograms()
        outcomes.add(.disk, nanoseconds: 60_000, bodyBytes: 5)
        outcomes.add(.disk, nanoseconds: 1_500_000_000, bodyBytes: 6)
        outcomes.add(.disk, nanoseconds: 60_000_000_000, bodyBytes: 7)
        let site = SiteCounters()
        site.add(.requests(.hit), 7)
        site.add(.bodyBytes(.peer), 9)
        site.add(.originBytes, 10)
        snapshot = MetricsSnapshot(
            loops: loops, node: node,
            sites: [
                SiteSnapshot(name: "a.example:8080", counters: []),
                SiteSnapshot(name: "*", counters: [site]),
            ],
            outcomes: [outcomes],
            members: [MemberSnapshot(name: "00ff", lagRecords: 3)])
    }

    private func lines(_ format: MetricsFormat) -> [String] {
        String(decoding: MetricsExposition.render(snapshot, as: format), as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    private func family(_ name: String, _ format: MetricsFormat = .text) -> [String] {
        let lines = lines(format)
        guard let start = lines.firstIndex(where: { $0.hasPrefix("# HELP \(name) ") }) else {
            return []
        }
        let rest = lines[(start + 1)...]
        return Array(rest.prefix { !$0.hasPrefix("# HELP ") && $0 != "# EOF" && !$0.isEmpty })
    }

    @Test("A family has its help, its type and a line for each value")
    func familyIsHelpTypeAndSeries() {
        #expect(
            family("nuthatch_requests_total") == [
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

    @Test("A single value has no label, and parts of a unit are fractions")
    func singleValues() {
        #expect(
            family("nuthatch_connections_open") == [
                "# TYPE nuthatch_connections_open gauge", "nuthatch_connections_open 1",
            ])
        #expect(family("nuthatch_memory_limit_bytes").last?.hasSuffix(" 1099511627776") == true)
        #expect(family("nuthatch_memory_stalled_ratio").last?.hasSuffix(" 0.07") == true)
    }

    @Test("Totals are sums of other families")
    func sums() {
        #expect(
            family("nuthatch_errors_total").contains("nuthatch_errors_total{side=\"client\"} 8"))
        #expect(family("nuthatch_errors_total").contains("nuthatch_errors_total{side=\"disk\"} 0"))
    }

    @Test("A histogram's buckets are cumulative, in seconds")
    func histogram() {
        let name = "nuthatch_request_duration_seconds"
        let lines = family(name)
        #expect(lines.first == "# TYPE \(name) histogram")
        for line in [
            "\(name)_bucket{cache=\"disk\",le=\"0.00005\"} 0",
            "\(name)_bucket{cache=\"disk\",le=\"0.0001\"} 1",
            "\(name)_bucket{cache=\"disk\",le=\"1\"} 1",
            "\(name)_bucket{cache=\"disk\",le=\"2\"} 2",
            "\(name)_bucket{cache=\"disk\",le=\"10\"} 2",
            "\(name)_bucket{cache=\"disk\",le=\"+Inf\"} 3", "\(name)_sum{cache=\"disk\"} 61.50006",
            "\(name)_count{cache=\"disk\"} 3", "\(name)_count{cache=\"peer\"} 0",
        ] {
            #expect(lines.contains(line), "\(line)")
        }
        #expect(
            family("nuthatch_body_bytes_total").contains { $0.hasSuffix("{cache=\"disk\"} 18") })
        let bucket = "\(name)_bucket{cache=\"disk\",le=\"10.0\"} 2"
        #expect(family(name, .openMetrics).contains(bucket))
    }

    @Test("Sites and members have series of their own, labelled by hosts and ids")
    func parts() {
        let requests = family("nuthatch_site_requests_total")
        #expect(requests.count == 1 + 2 * CacheOutcome.allCases.count)
        #expect(
            requests[1] == "nuthatch_site_requests_total{site=\"a.example:8080\",cache=\"hit\"} 0")
        #expect(requests.contains("nuthatch_site_requests_total{site=\"*\",cache=\"hit\"} 7"))
        let bytes = family("nuthatch_site_body_bytes_total")
        #expect(bytes.contains("nuthatch_site_body_bytes_total{site=\"*\",cache=\"peer\"} 9"))
        #expect(
            family("nuthatch_site_origin_received_bytes_total").last
                == "nuthatch_site_origin_received_bytes_total{site=\"*\"} 10")
        #expect(
            family("nuthatch_member_lag_records").last
                == "nuthatch_member_lag_records{member=\"00ff\"} 3")
    }

    @Test("Without sites and members their series are absent, and all others are present")
    func absentParts() {
        let bare = MetricsSnapshot(loops: [], node: NodeCounters())
        let text = String(decoding: MetricsExposition.render(bare, as: .text), as: UTF8.self)
        for family in MetricTable.families {
            let isPart =
                switch family.source {
                case .sites, .members: true
                case .node, .sums, .outcomes: false
                }
            #expect(text.contains("# HELP \(family.name) ") != isPart, "\(family.name)")
        }
    }

    @Test("Every line is a comment or a name and a number", arguments: MetricsFormat.allCases)
    func everyLineHasTheFormat(format: MetricsFormat) throws {
        let lines = lines(format)
        #expect(lines.last?.isEmpty == true)
        let label = /[a-z]+="[a-z0-9_.:*+]+"/
        let series = /[a-z_]+(\{[^{}]+\})? [0-9]+(\.[0-9]*[1-9])?/
        let comment =
            /# (HELP [a-z_]+ [^\n]+|TYPE [a-z_]+ (counter|gauge|histogram)|UNIT [a-z_]+ [a-z]+)/
        for line in lines.dropLast(format == .openMetrics ? 2 : 1) {
            if try comment.wholeMatch(in: line) != nil { continue }
            let match = try #require(try series.wholeMatch(in: line), "\(line)")
            let labels = match.output.1?.dropFirst().dropLast().split(separator: ",") ?? []
            for pair in labels {
                let value = pair.replacing("+Inf", with: "inf")
                #expect(try label.wholeMatch(in: value) != nil, "\(line)")
            }
        }
    }

    @Test("OpenMetrics names counters without their suffix, gives units, and ends with EOF")
    func openMetrics() {
        let lines = lines(.openMetrics)
        #expect(Array(lines.suffix(2)) == ["# EOF", ""])
        let sent = family("nuthatch_sent_bytes", .openMetrics)
        #expect(
            sent == [
                "# TYPE nuthatch_sent_bytes counter", "# UNIT nuthatch_sent_bytes bytes",
                "nuthatch_sent_bytes_total 0",
            ])
        // A unit is allowed only if the name ends with it.
        #expect(family("nuthatch_fenced", .openMetrics)[1] == "nuthatch_fenced 0")
        #expect(!self.lines(.text).contains { $0.hasPrefix("# UNIT") || $0 == "# EOF" })
        let values = lines.filter { !$0.hasPrefix("#") }
        #expect(values.count == self.lines(.text).count { !$0.hasPrefix("#") })
    }
}
