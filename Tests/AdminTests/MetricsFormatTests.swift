import Admin
import Testing

@Suite("Content negotiation for metrics")
struct MetricsFormatTests {
    private func format(_ accept: String...) -> MetricsFormat {
        MetricsFormat(accepting: accept.map { Array($0.utf8) })
    }

    @Test("Text is the default, and the answer to unsupported or invalid requests")
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

    @Test("OpenMetrics is sent on request, in any spelling")
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

    @Test("The higher weight wins, then the more specific range")
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

    @Test("The Accept fields of Prometheus, old and new")
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

    @Test("Backslashes and line feeds in help are escaped, in OpenMetrics quotes too")
    func helpIsEscaped() {
        #expect(MetricsFormat.text.escaped("a\\b\nc\"d") == "a\\\\b\\nc\"d")
        #expect(MetricsFormat.openMetrics.escaped("a\\b\nc\"d") == "a\\\\b\\nc\\\"d")
    }
}
