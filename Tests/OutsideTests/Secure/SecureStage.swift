import Foundation
import Harness
import Testing

/// An origin, and a node that serves TLS as `a.example`, which is a site, and as `b.example`.
final class SecureStage {
    static let site = "a.example"
    static let images = "b.example"

    /// The authority of all tests: generating keys takes a while.
    static let authority = Result { try TestAuthority() }
    private static let leaf = Result {
        try authority.get().leaf("both", hosts: [site, images], addresses: ["127.0.0.1"])
    }

    let authority: TestAuthority
    let origin: ScriptedOrigin
    let node: NodeProcess
    let curl: Curl

    init(
        _ flags: String..., environment: [String: String] = [:],
        certificates: [TestAuthority.Leaf]? = nil,
        requestsPerConnection: Int? = nil
    ) throws {
        authority = try Self.authority.get()
        origin = try ScriptedOrigin()
        node = try NodeProcess(
            ["--site", "\(Self.site)=\(origin.url(""))", "--allow-origin", "*"] + flags,
            environment: environment, certificates: try certificates ?? [Self.leaf.get()])
        curl = Curl(
            trusting: authority, hosts: [Self.site, Self.images, "unknown.example"])
    }

    deinit { node.kill() }

    /// Returns the URL of a path of the site.
    func url(_ path: String, host: String = SecureStage.site) -> String {
        "https://\(host):\(node.securePort)\(path)"
    }

    /// Returns the URL of the image interface for a path of the origin.
    func image(_ path: String) -> String {
        url(ImageRequestTarget.forURL(origin.url(path)), host: Self.images)
    }

    /// Returns the output of `openssl s_client` for a connection with a request for `/healthz`.
    func openssl(
        _ options: String..., name: String = SecureStage.images, port: Int? = nil
    ) throws -> OpenSSLClient {
        try OpenSSLClient(
            port: port ?? node.securePort, name: name, authority: authority, options)
    }

    /// Waits until a metric has a value.
    func waitForFigure(
        _ series: String, _ value: Double, at location: SourceLocation = #_sourceLocation
    ) {
        expectSoon(20, "\(series) is \(node.metric(series) ?? -1)", at: location) {
            node.metric(series) == value
        }
    }
}

/// The output of `openssl s_client` for one connection.
struct OpenSSLClient {
    let status: Int?
    let output: String
    let errors: String

    /// Connects, sends `text`, and reads until the server closes.
    init(
        port: Int, name: String, authority: TestAuthority, _ options: [String],
        sending text: String? = nil
    ) throws {
        let request =
            text ?? "GET /healthz HTTP/1.1\r\nHost: \(name)\r\nConnection: close\r\n\r\n"
        let naming = options.contains("-noservername") ? [] : ["-servername", name]
        let command =
            ["openssl", "s_client", "-connect", "127.0.0.1:\(port)"] + naming
            + ["-CAfile", authority.file, "-verify_hostname", name, "-ign_eof"] + options
        // The program's own standard input is empty, so a shell provides one.
        let result = try Program.run(
            "/bin/sh", ["-c", "printf %s \"$0\" | \"$@\"", request] + command)
        status = result.status
        output = String(decoding: result.output, as: UTF8.self)
        errors = result.errors
    }

    var isVerified: Bool { output.contains("Verify return code: 0 (ok)") }
    var isResumed: Bool { output.contains("\nReused, TLS") }
    var isAnswered: Bool { output.contains("HTTP/1.1 200") }
    /// The subject name of the certificate.
    var subject: String? {
        let line = output.split(separator: "\n").first { $0.hasPrefix("subject=") }
        return line?.split(separator: "=").last?.trimmingCharacters(in: .whitespaces)
    }
}
