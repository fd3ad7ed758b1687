import NIOCore
import Origin
import Wire

/// Runs `body` with a client and an HTTP/2 origin that answers with `answer`.
func withStreamOrigin(
    settings: HTTP2Settings = HTTP2Settings(),
    client: @escaping @Sendable (inout OriginSettings) -> Void = { _ in },
    _ response: @escaping StreamOrigin.Answer, body: (Rig, StreamOrigin) async throws -> Void
) async throws {
    let trust = try Secure.trust()
    let server = try Secure.server(protocols: [.http2, .http11])
    try await Rig.run(settings: {
        $0.trustStore = trust
        client(&$0)
    }) { rig in
        let origin = try await StreamOrigin.listening(
            on: rig.group, server, settings: settings, response)
        try await body(rig, origin)
        try await origin.stop()
    }
}

/// A request of a site whose origin is on loopback, over TLS.
func streamRequest(
    _ port: UInt16, _ method: RequestMethod = .get, path: String = "/",
    body: RequestBodyFraming = .none
) -> OriginFetchRequest {
    OriginFetchRequest(
        origin: OriginAuthority(host: "127.0.0.1", port: port, isSecure: true), method: method,
        head: Array("\(method.text) \(path) HTTP/1.1\r\nHost: a.example\r\n".utf8), body: body,
        isSafeToRetry: method != .post)
}
