import Admin
import Testing

@Suite("The format of metrics that a scraper gets")
struct MetricsFormatTests {
    private func format(_ accept: String...) -> MetricsFormat {
        MetricsFormat(accepting: accept.map { Array($0.utf8) })
    }

    @Test("who does not ask gets text, and so does who takes neither or makes no sense")
    func text() {
        #expect(format() == .text)
        for accept in [
            "", "*/*", "text/plain", "text/*", "text/html, image/webp",
            "text/plain;version=0.0.4, */*;q=0.1", ";;,,=", "application/openmetrics-text;q",
            "application/openmetrics-text;q=2", "application/openmetrics-text;q=0.1234",
            "application/openmetrics-text;q=.5", "application/openmetrics-text;q=1x",
            "application/openmetrics-text;version=2.0.0", "application/openmetrics-text-2",
            "application/openmetrics-text; charset=latin1", "openmetrics", "\"", "\u{FF}\u{0}",
        ] {
            #expect(format(accept) == .text, "\(accept)")
        }
    }

    @Test("who asks for OpenMetrics gets it, in whatever way that is said")
    func openMetrics() {
        for accept in [
            "application/openmetrics-text", "Application/OpenMetrics-Text; Version=1.0.0",
            "application/openmetrics-text; version=\"1.0.0\"; charset=utf-8", "application/*",
            ", application/openmetrics-text ;q=0.001", "application/openmetrics-text;q=1.000;ext",
            "application/openmetrics-text;version=1.0.0;escaping=underscores",
        ] {
            #expect(format(accept) == .openMetrics, "\(accept)")
        }
        #expect(format("text/html", "application/openmetrics-text") == .openMetrics)
    }

    @Test("of two the one that is liked better, then the one that is named more closely")
    func weights() {
        let name = "application/openmetrics-text"
        #expect(format("\(name);q=0.5, text/plain;q=0.4") == .openMetrics)
        #expect(format("\(name);q=0.4, text/plain;q=0.5") == .text)
        #expect(format("\(name);q=0.4, */*;q=0.5") == .text)
        #expect(format("\(name), */*") == .openMetrics)
        #expect(format("\(name), text/plain") == .text)
        #expect(format("*/*, \(name);q=0") == .text)
        #expect(format("application/*;q=0.9, \(name);q=0, text/plain;q=0.1") == .text)
        #expect(format("text/plain;q=0, \(name);q=0.1") == .openMetrics)
        #expect(format("text/plain;q=0, */*;q=0.1") == .openMetrics)
    }

    @Test("what Prometheus sends, old and new")
    func prometheus() {
        let old =
            "application/openmetrics-text;version=1.0.0,"
            + "application/openmetrics-text;version=0.0.1;q=0.75,"
            + "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
        #expect(format(old) == .openMetrics)
        let new =
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
            + "application/openmetrics-text;version=0.0.1;q=0.5,"
            + "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
            + "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
        #expect(format(new) == .openMetrics)
        #expect(format("application/openmetrics-text;version=0.0.1,text/plain;q=0.5") == .text)
    }

    @Test("a help text's backslashes and line feeds are escaped, in OpenMetrics quotes too")
    func helpIsEscaped() {
        #expect(MetricsFormat.text.escaped("a\\b\nc\"d") == "a\\\\b\\nc\"d")
        #expect(MetricsFormat.openMetrics.escaped("a\\b\nc\"d") == "a\\\\b\\nc\\\"d")
    }
}
