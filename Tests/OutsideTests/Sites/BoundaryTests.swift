import Foundation
import Harness
import Testing

extension Outside {
    /// The limits of a request: which hosts and paths it reaches, and what it may change.
    @Suite("Boundaries of a site")
    struct BoundaryTests {
        private let origin: ScriptedOrigin

        init() throws {
            origin = try ScriptedOrigin()
            origin.onAnyOtherPath { _ in .text("it", fields: [lasting]) }
        }

        private func node(_ site: String, path: String = "", _ flags: String...) throws
            -> NodeProcess
        {
            try NodeProcess(["--site", "\(site)=\(origin.url(path))"] + flags)
        }

        @Test("A site * requests its origin with the host that is part of the cache key")
        func canonicalHost() throws {
            let folder = try TemporaryFolder()
            let text = "sites:\n  \"*\":\n    origin: \(origin.url(""))\n    host: client\n"
            let file = try folder.write(text, to: "nuthatch.yaml")
            let node = try NodeProcess(["--config", file.path])
            for host in ["VICTIM.example.:0080", "victim.example", "Victim.Example:80"] {
                #expect(try node.get("/it", host: host).text == "it")
            }
            #expect(origin.requests("/it").map { $0.fields["Host"] } == ["victim.example"])
            #expect(origin.requests("/it")[0].fields["X-Forwarded-Host"] == "victim.example")
            #expect(try node.get("/it", host: "Victim.example:81").text == "it")
            #expect(origin.requests("/it").last?.fields["Host"] == "victim.example:81")
        }

        @Test(
            "An invalid Host is refused for every target",
            arguments: ["a,b", "a%41", "a b", "a@b", "[::1", "a:b", ".a", "a..b"])
        func noName(host: String) throws {
            let image = "/v1/image?url=" + origin.url("/it")
            for site in ["*", "a.example"] {
                let node = try node(site, "--allow-origin", "127.0.0.1")
                for target in ["/it", image] {
                    #expect(try node.get(target, host: host).status == 400)
                }
            }
            #expect(origin.log.isEmpty)
        }

        @Test("Beside sites, image URLs are served only if allow-origin permits")
        func images() throws {
            let image = TestImage.generated(.png, byteCount: 5_000, seed: 77)
            let path = origin.serve(image, fields: [lasting])
            let target = ImageRequestTarget.forURL(origin.url(path))
            let closed = try node("a.example")
            let response = try closed.get(target)
            expectProblem(response, 404)
            #expect(response.text.contains("site-unknown"), "\(response)")
            #expect(try closed.get("/healthz").status == 200)
            // A site for every host has this path like any other.
            let everything = try node("*")
            #expect(try everything.get(target).text == "it")
            #expect(origin.requests(path).isEmpty)
            let open = try node("a.example", "--allow-origin", "127.0.0.1")
            #expect(try open.get(target, expecting: image).matches(image))
        }

        @Test(
            "No path above that of a site's origin is requested",
            arguments: [
                "/../private", "/%2e%2e/private", "/a/..;/..;/private", "/a/%252e%252e/../../x",
                "/..%2Fprivate", "/..\\private", "/..%00/private", "/..%20/private",
            ])
        func above(target: String) throws {
            let node = try node("a.example", path: "/public")
            let response = try node.get(target, host: "a.example")
            expectProblem(response, 400)
            #expect(response.text.contains("outside-site"), "\(response)")
            let posted = try node.connect().post("x", to: target, host: "a.example")
            #expect(posted.status == 400)
            #expect(origin.log.isEmpty)
            #expect(try node.get("/a/../b", host: "a.example").text == "it")
            #expect(origin.log.last?.target == "/public/a/../b")
            #expect(node.metric("nuthatch_fills_in_flight") == 0)
        }

        @Test("HEAD refreshes a stored response and does not replace it")
        func head() throws {
            let folder = try TemporaryFolder()
            let text =
                "sites:\n  a.example:\n    origin: \(origin.url(""))\n"
                + "    honours-request-control: on\n"
            let file = try folder.write(text, to: "nuthatch.yaml")
            let node = try NodeProcess(["--config", file.path])
            origin.on("/it") { request in
                let asked = request.fields["X-Asked"] ?? "none"
                return .text("it", fields: [lasting, "ETag: \"a\"", "Link: <\(asked)>"])
            }
            let ask = ["Cache-Control: no-cache", "X-Asked: evil"]
            #expect(try node.get("/it", host: "a.example").fields["Link"] == "<none>")
            let head = try node.get("/it", method: "HEAD", host: "a.example", fields: ask)
            #expect(head.fields["Link"] == "<evil>")
            let after = try node.get("/it", host: "a.example")
            #expect(after.isHit && after.fields["Link"] == "<none>", "\(after)")
            #expect(origin.requests("/it").map(\.method) == ["GET", "HEAD"])
        }

        @Test("By default request directives cannot force a fetch of a fresh response")
        func control() throws {
            let node = try node("a.example")
            for method in ["GET", "HEAD"] {
                for field in [
                    "Cache-Control: no-cache", "Cache-Control: max-age=0", "Pragma: no-cache",
                ] {
                    let response = try node.get(
                        "/it", method: method, host: "a.example", fields: [field])
                    #expect(response.status == 200)
                }
            }
            #expect(origin.requests("/it").count == 1)
        }
    }
}
