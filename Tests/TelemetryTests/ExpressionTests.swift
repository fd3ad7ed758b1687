import Testing

@Suite("Checking PromQL expressions")
struct ExpressionTests {
    @Test(
        "An expression that agrees with the table has no errors",
        arguments: [
            "nuthatch_fenced == 1", "rate(nuthatch_requests_total{cache=\"hit\"}[5m]) > 0",
            "sum by (job, instance, cache) (rate(nuthatch_requests_total{job=\"a\"}[5m]))",
            "sum by (le) (rate(nuthatch_request_duration_seconds_bucket{cache=~\"hit|disk\"}[5m]))",
            "nuthatch_site_requests_total{site=\"a.example\",cache!=\"none\"}",
            "up{job=\"x\"} == 0",
            "nuthatch_requests_total{cache=~\"$cache\"}",
        ])
    func right(_ text: String) {
        #expect(Expression(text).faults().isEmpty)
        #expect(!Expression(text).selectors.isEmpty)
    }

    @Test(
        "A contradiction to the table is reported",
        arguments: [
            ("nuthatch_fence == 1", "nuthatch_fence is not in the table"),
            ("nuthatch_requests", "nuthatch_requests is not in the table"),
            (
                "nuthatch_request_duration_seconds",
                "nuthatch_request_duration_seconds is not in the table"
            ),
            ("nuthatch_fenced{cache=\"hit\"}", "nuthatch_fenced has no cache"),
            (
                "nuthatch_requests_total{cache=\"hits\"}",
                "no nuthatch_requests_total has cache hits"
            ),
            (
                "nuthatch_requests_total{cache=~\"hit|memory\"}",
                "no nuthatch_requests_total has cache memory"
            ),
            ("sum by (site) (nuthatch_fenced)", "nothing has a label site"),
            ("sum by (le) (nuthatch_requests_total)", "nothing has a label le"),
            ("a:nuthatch_b:c > 0", "a:nuthatch_b:c is not in the table"),
        ])
    func wrong(_ text: String, fault: String) {
        #expect(Expression(text).faults() == [fault])
    }

    @Test("Recording rules may be used")
    func records() {
        #expect(Expression("a:nuthatch_b:c > 0").faults(records: ["a:nuthatch_b:c"]).isEmpty)
    }
}
