import Harness
import Testing

/// A combination of HTTP version and transport that curl uses.
enum Way: String, CaseIterable, CustomTestStringConvertible {
    case h1 = "HTTP/1.1"
    case h2c = "HTTP/2 in clear text"
    case upgrade = "HTTP/1.1 that would rather be HTTP/2"
    case h1OverTLS12 = "HTTP/1.1 over TLS 1.2"
    case h1OverTLS13 = "HTTP/1.1 over TLS 1.3"
    case h2OverTLS12 = "HTTP/2 over TLS 1.2"
    case h2OverTLS13 = "HTTP/2 over TLS 1.3"

    var testDescription: String { rawValue }

    /// All but the one that the others are compared with.
    static let others = allCases.filter { $0 != .h1 }

    var options: [String] {
        switch self {
        case .h1: ["--http1.1"]
        case .h2c: ["--http2-prior-knowledge"]
        case .upgrade: ["--http2"]
        case .h1OverTLS12: ["--http1.1", "--tlsv1.2", "--tls-max", "1.2"]
        case .h1OverTLS13: ["--http1.1", "--tlsv1.3"]
        case .h2OverTLS12: ["--http2", "--tlsv1.2", "--tls-max", "1.2"]
        case .h2OverTLS13: ["--http2", "--tlsv1.3"]
        }
    }

    /// curl's name of the HTTP version.
    var version: String {
        switch self {
        case .h2c, .h2OverTLS12, .h2OverTLS13: "2"
        case .h1, .upgrade, .h1OverTLS12, .h1OverTLS13: "1.1"
        }
    }

    private var isSecure: Bool {
        switch self {
        case .h1, .h2c, .upgrade: false
        case .h1OverTLS12, .h1OverTLS13, .h2OverTLS12, .h2OverTLS13: true
        }
    }

    /// Requests a target of a host.
    func ask(
        _ stage: SecureStage, _ target: String, host: String, _ more: [String] = []
    ) throws -> Curl.TransferResult {
        try stage.curl.run(options + more + [url(stage, target, host: host)])
    }

    func url(_ stage: SecureStage, _ target: String, host: String) -> String {
        isSecure
            ? stage.url(target, host: host) : "http://\(host):\(stage.node.port)\(target)"
    }
}
