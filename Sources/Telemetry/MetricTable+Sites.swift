extension MetricFamily {
    /// The rows of which each site has series.
    static let siteFamilies = [
        MetricFamily(
            "nuthatch_site_requests_total", .counter, "requests",
            .sites(
                label: "cache",
                CacheOutcome.allCases.map { Series(metric: .requests($0), label: $0.label) }),
            meaning: "Requests for a site by how the cache took part in the answer",
            advice: "Many that passed: look at Cache-Control, Set-Cookie and methods of the site."),
        MetricFamily(
            "nuthatch_site_body_bytes_total", .counter, "bytes",
            .sites(
                label: "cache",
                CacheOutcome.allCases.map { Series(metric: .bodyBytes($0), label: $0.label) }),
            meaning: "Bytes of bodies of whole answers of a site, by how the cache took part",
            advice: "Few bytes from memory with many hits there: the large answers are elsewhere."),
        MetricFamily(
            "nuthatch_site_origin_received_bytes_total", .counter, "bytes",
            .sites(label: "", [Series(metric: .originBytes, label: "")]),
            meaning: "Bytes of bodies received from a site's origin",
            advice: "Growth without misses is what is passed and not stored."),
    ]
}
