import Client
import Testing

@Suite("Figures for people")
struct FiguresTests {
    @Test("Counts have thousands separators")
    func counts() {
        #expect(
            [0, 999, 1000, 1_234_567].map(NumberFormat.count) == ["0", "999", "1,000", "1,234,567"])
        #expect(NumberFormat.plural(1, "entry", "entries") == "1 entry")
        #expect(NumberFormat.plural(2000, "image") == "2,000 images")
    }

    @Test(
        "Rates are short, and a small rate is not shown as zero",
        arguments: [
            (0, "0"), (-1, "0"), (.nan, "0"), (0.05, "<0.1"), (7.25, "7.3"), (7, "7"),
            (9.96, "10"), (412.4, "412"), (999.6, "1k"), (4240, "4.2k"), (118_000, "118k"),
            (1_300_000, "1.3M"),
        ])
    func rates(rate: Double, text: String) {
        #expect(NumberFormat.rate(rate) == text)
    }

    @Test(
        "A percentage is rounded down, so that only everything is 100 %",
        arguments: [
            (0.987, "98.7%"), (0.99999, "99.9%"), (1, "100%"), (0, "0%"), (0.05, "5.0%"),
            (nil, "–"), (.nan, "–"),
        ])
    func percent(share: Double?, text: String) {
        #expect(NumberFormat.percent(share) == text)
    }

    @Test(
        "Sizes use powers of 1024 and three digits at most",
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1 KiB"), (1536, "1.5 KiB"),
            (118 << 30, "118 GiB"), (1 << 20, "1 MiB"),
        ])
    func bytes(count: UInt64, text: String) {
        #expect(NumberFormat.bytes(count) == text)
    }

    @Test(
        "Durations have their two largest units",
        arguments: [
            (0, "0ms"), (999, "999ms"), (1000, "1s"), (61_000, "1m 1s"), (3_600_000, "1h"),
            (3_660_000, "1h 1m"), (90_000_000_000, "1041d 16h"), (-5, "0ms"),
        ])
    func durations(milliseconds: Int64, text: String) {
        #expect(NumberFormat.duration(milliseconds: milliseconds) == text)
    }

    @Test(
        "Latencies have a suitable unit",
        arguments: [
            (nil, "–"), (.infinity, ">10s"), (84.2, "84µs"), (999.6, "1ms"), (1500, "1.5ms"),
            (42_000, "42ms"), (2_000_000, "2s"),
        ])
    func latencies(microseconds: Double?, text: String) {
        #expect(NumberFormat.latency(microseconds) == text)
    }
}
