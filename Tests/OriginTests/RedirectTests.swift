import Ground
import HTTPRules
import Harness
import NIOCore
import Origin
import Testing

@Suite("Redirects")
struct RedirectTests {
    static func redirect(
        _ location: String, _ status: String = "302 Found", body: String = ""
    ) -> [ByteOrigin.Step] {
        [
            .awaitRequestHead,
            .send(
                "HTTP/1.1 \(status)\r\nLocation: \(location)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"),
        ]
    }

    @Test(
        "Each status that redirects a GET is followed, on the same connection if possible",
        arguments: ["301 M", "302 F", "303 S", "307 T", "308 P"])
    func followed(status: String) async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(Self.redirect("/b/c?d", status, body: "moved") + hi)
            let outcome = try await rig.get(origin.port, path: "/a")
            #expect(outcome.text == "hi")
            #expect(outcome.redirects == ["http://127.0.0.1:\(origin.port)/b/c?d"])
            #expect(origin.connections == 1)
            #expect(
                origin.requests.map { $0.prefix { $0 != "\r\n" } }
                    == ["GET /a HTTP/1.1", "GET /b/c?d HTTP/1.1"])
        }
    }

    @Test("300, 304, 305 and a redirect without Location are final responses")
    func notFollowed() async throws {
        try await Rig.run { rig in
            for status in ["300 M", "305 U"] {
                let origin = try await rig.origin(Self.redirect("/b", status))
                #expect(try await rig.get(origin.port).redirects == [])
            }
            let origin = try await rig.origin(
                [.awaitRequestHead, .send("HTTP/1.1 302 F\r\nContent-Length: 0\r\n\r\n")])
            #expect(try await rig.get(origin.port).status == 302)
        }
    }

    @Test("With redirects disabled a redirect is a final response")
    func off() async throws {
        try await Rig.run(settings: { $0.redirectsMax = 0 }) { rig in
            let origin = try await rig.origin(Self.redirect("/b"))
            #expect(try await rig.get(origin.port).status == 302)
        }
    }

    @Test("Redirects are followed up to the limit, and one more is refused")
    func limit() async throws {
        try await Rig.run(settings: { $0.redirectsMax = 2 }) { rig in
            let steps = Self.redirect("/b") + Self.redirect("/c")
            let fits = try await rig.origin(steps + hi)
            #expect(try await rig.get(fits.port, path: "/a").text == "hi")
            let exceeds = try await rig.origin(steps + Self.redirect("/d") + hi)
            let outcome = try await rig.get(exceeds.port, path: "/a")
            #expect(outcome.failure == .tooManyRedirects(max: 2))
            #expect(outcome.failure?.status == 502)
        }
    }

    @Test("A loop is refused when it closes", arguments: ["/a", "", "#top", "/x/../a"])
    func loop(location: String) async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(Self.redirect(location))
            #expect(try await rig.get(origin.port, path: "/a").failure == .redirectLoop)
        }
    }

    @Test(
        "A target that is no http or https URL is refused",
        arguments: ["ftp://a.example/b", "javascript:alert(1)", "//user@a.example/", "//[::1/"])
    func nonsense(location: String) async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(Self.redirect(location))
            guard case .redirectRefused? = try await rig.get(origin.port).failure else {
                Issue.record("\(location) was followed")
                return
            }
        }
    }

    @Test("Every hop is subject to the guard, the origin patterns and the schemes")
    func guarded() async throws {
        let names = ["a.example": [["127.0.0.1"]], "b.example": [["127.0.0.1"]]]
        try await Rig.run(
            opening: ["127.0.0.1/32"], patterns: ["a.example", "127.0.0.2"], names: names
        ) { rig in
            let inside = try await rig.origin(address: "127.0.0.2", hi)
            let locations = [
                "http://127.0.0.2:\(inside.port)/", "http://b.example/", "https://b.example/",
            ]
            for location in locations {
                let origin = try await rig.origin(Self.redirect(location))
                let outcome = try await rig.get(origin.port, host: "a.example")
                guard case .redirected(_, let failure)? = outcome.failure else {
                    Issue.record("\(location): \(String(describing: outcome.end))")
                    continue
                }
                #expect(failure.side == .client)
                #expect(outcome.failure?.side == .origin && outcome.failure?.status == 502)
            }
            #expect(inside.connections == 0)
        }
    }

    @Test("The body of a redirect is dropped, however long, late or truncated")
    func bodies() async throws {
        try await Rig.run { rig in
            let target = try await rig.origin((1...4).flatMap { _ in hi })
            let location = "Location: http://127.0.0.1:\(target.port)/\r\n"
            let scripts: [[ByteOrigin.Step]] = [
                [
                    .awaitRequestHead,
                    .send("HTTP/1.1 302 F\r\n\(location)Content-Length: 50000000\r\n\r\n"),
                    .flood(50_000_000),
                ],
                [
                    .awaitRequestHead, .send("HTTP/1.1 302 F\r\n\(location)\r\n"), .flood(10),
                    .awaitGate,
                ],
                [
                    .awaitRequestHead,
                    .send("HTTP/1.1 302 F\r\n\(location)Content-Length: 10\r\n\r\nabc"),
                    .reset,
                ],
                [
                    .awaitRequestHead,
                    .send(
                        "HTTP/1.1 302 F\r\n\(location)Transfer-Encoding: chunked\r\n\r\nno chunk"),
                ],
            ]
            for script in scripts {
                let origin = try await rig.origin(script)
                let outcome = try await rig.get(origin.port)
                #expect(outcome.text == "hi" && outcome.lateCalls == 0)
            }
        }
    }

    @Test("A failure after a redirect names the host where it happened")
    func failureNamed() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(Self.redirect("http://127.0.0.99:1/"))
            let authority = OriginAuthority(host: "127.0.0.99", port: 1)
            let failure = try await rig.get(origin.port).failure
            #expect(
                failure
                    == .redirected(
                        to: authority, .connectFailed(authority, reason: "refused")))
        }
    }

    @Test("The total limit applies across redirects")
    func totalLimit() async throws {
        try await Rig.run(
            settings: {
                $0.redirectsMax = 20
                $0.totalLimit = .milliseconds(300)
            }
        ) { rig in
            let origin = try await rig.origin(
                Self.redirect("/b") + Self.redirect("/c") + [.awaitRequestHead, .awaitGate])
            let failure = try await rig.get(origin.port, path: "/a").failure
            #expect(failure?.underlying == .timedOut(.total, limit: .milliseconds(300)))
        }
    }
}
