import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing

@Suite("A forward proxy")
struct ProxyTests {
    static let tunnel: [ByteOrigin.Step] = [
        .awaitRequestHead, .send("HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n"),
    ]

    private static func settings(
        _ proxy: ByteOrigin, host: String = "127.0.0.1", looksUpNames: Bool = false
    ) -> @Sendable (inout OriginSettings) -> Void {
        let authority = OriginAuthority(host: host, port: proxy.port)
        return { $0.proxy = ForwardProxy(authority, resolvesNames: looksUpNames) }
    }

    private func withProxy(
        _ scripts: [ByteOrigin.Step], host: String = "127.0.0.1", looksUpNames: Bool = false,
        names: [String: [[String]]] = [:], opening: [String] = ["192.0.2.0/24"],
        _ body: (Rig, ByteOrigin) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let proxy = try await ByteOrigin.listening(on: group, scripts)
        try await Rig.run(
            opening: opening, names: names,
            settings: Self.settings(proxy, host: host, looksUpNames: looksUpNames)
        ) { rig in
            try await body(rig, proxy)
        }
        try await proxy.stop()
        try await group.shutdownGracefully()
    }

    @Test("The tunnel is requested for an address that the node resolved and checked")
    func tunnelled() async throws {
        let names = ["a.example": [["192.0.2.7"]]]
        try await withProxy(Self.tunnel + hi + hi, names: names) { rig, proxy in
            for _ in 1...2 {
                let response = try await rig.get(8080, host: "a.example")
                #expect(response.text == "hi")
            }
            #expect(proxy.connections == 1)
            #expect(proxy.requests.count == 3)
            #expect(
                proxy.requests[0]
                    == "CONNECT 192.0.2.7:8080 HTTP/1.1\r\nHost: 192.0.2.7:8080\r\n\r\n")
            #expect(proxy.requests[1].contains("\r\nHost: a.example:8080\r\n"))
        }
    }

    @Test("No tunnel is requested to an address that the guard refuses")
    func guarded() async throws {
        let names = ["a.example": [["10.0.0.1"]]]
        try await withProxy(Self.tunnel + hi, names: names) { rig, proxy in
            guard case .addressRefused? = try await rig.get(80, host: "a.example").failure else {
                Issue.record("a tunnel to a private address was requested")
                return
            }
            #expect(proxy.connections == 0)
        }
    }

    @Test("A resolving proxy is given the name; literal addresses are checked nevertheless")
    func names() async throws {
        try await withProxy(Self.tunnel + hi, looksUpNames: true) { rig, proxy in
            #expect(try await rig.get(8080, host: "a.example").text == "hi")
            #expect(proxy.requests.first?.hasPrefix("CONNECT a.example:8080 HTTP/1.1\r\n") == true)
            #expect(rig.resolver.asked("a.example") == 0)
            guard case .addressRefused? = try await rig.get(80, host: "10.0.0.1").failure else {
                Issue.record("a tunnel to a private address was requested")
                return
            }
        }
    }

    @Test("The proxy's own name may have any address, and each is tried")
    func proxyName() async throws {
        let names = ["proxy.example": [["127.0.0.3", "127.0.0.1"]]]
        try await withProxy(
            Self.tunnel + hi, host: "proxy.example", names: names
        ) { rig, _ in
            let response = try await rig.get(80, host: "192.0.2.1")
            #expect(response.text == "hi")
        }
    }

    static let refusals: [([ByteOrigin.Step], String)] = [
        (
            [.awaitRequestHead, .send("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")],
            "the proxy responded with status 407"
        ),
        (
            [.awaitRequestHead, .send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")],
            "the proxy responded with status 403"
        ),
        ([.awaitRequestHead, .close], "the proxy closed the connection"),
        (
            [.awaitRequestHead, .send("HTTP/1.1 200 OK\r\n\r\nmore")],
            "the proxy sent data after its response to CONNECT"
        ),
    ]

    @Test("A refused tunnel gives the reason, and nothing is sent to it", arguments: refusals)
    func refused(script: [ByteOrigin.Step], reason: String) async throws {
        try await withProxy(script) { rig, proxy in
            let outcome = try await rig.get(80, host: "192.0.2.1")
            let origin = OriginAuthority(host: "192.0.2.1", port: 80)
            #expect(outcome.failure == .connectFailed(origin, reason: reason))
            #expect(proxy.requests.count == 1)
        }
    }

    @Test("A response that is not HTTP, and silence, are no tunnel")
    func nonsense() async throws {
        try await withProxy([.awaitRequestHead, .send("SSH-2.0-x\r\n\r\n")]) { rig, _ in
            guard
                case .connectFailed(_, let reason)? =
                    try await rig.get(80, host: "192.0.2.1").failure
            else {
                Issue.record("an invalid response was taken for a tunnel")
                return
            }
            #expect(reason.hasPrefix("the proxy's response is not valid HTTP/1.1"))
        }
        try await withProxy([.awaitRequestHead, .awaitGate]) { rig, _ in
            try await rig.with { client in
                var settings = client.settings
                settings.connectLimit = .milliseconds(100)
                client.reconfigure(
                    settings: settings, addressGuard: client.addressGuard,
                    patterns: [.everything])
            }
            let outcome = try await rig.get(80, host: "192.0.2.1")
            #expect(outcome.failure == .timedOut(.connecting, limit: .milliseconds(100)))
        }
    }

    @Test("An unreachable proxy is reported as such")
    func absent() async throws {
        // No process listens there.
        let settings: @Sendable (inout OriginSettings) -> Void = {
            $0.proxy = ForwardProxy(
                OriginAuthority(host: "127.0.0.99", port: 1), resolvesNames: false)
        }
        try await Rig.run(opening: ["192.0.2.0/24"], settings: settings) { rig in
            let outcome = try await rig.get(80, host: "192.0.2.1")
            guard case .connectFailed(_, let reason)? = outcome.failure else {
                Issue.record("\(String(describing: outcome.end))")
                return
            }
            #expect(reason == "the proxy: refused")
        }
    }
}
