import Foundation
import Harness
import Testing

extension Outside {
    /// HTTP/2 clients other than curl.
    @Suite("Third-party HTTP/2 clients")
    struct HTTP2ToolTests {
        private let image = TestImage.generated(.jpeg, byteCount: 300_000, seed: 680)

        private static func has(_ program: String) -> Bool {
            (try? Program.find(program)) != nil
        }

        /// Starts a stage whose node is reachable by its address, which the certificate includes.
        private func stage() throws -> (SecureStage, target: String) {
            let stage = try SecureStage()
            let path = stage.origin.serve(image, fields: [lasting], etag: "\"v1\"")
            return (stage, ImageRequestTarget.forURL(stage.origin.url(path)))
        }

        private func addresses(_ stage: SecureStage, _ target: String) -> [String] {
            ["https://127.0.0.1:\(stage.node.securePort)\(target)"]
                + ["http://127.0.0.1:\(stage.node.port)\(target)"]
        }

        @Test("nghttp gets images, one and fifty at a time", .enabled(if: has("nghttp")))
        func nghttp() throws {
            let (stage, target) = try stage()
            let nghttp = try Program.find("nghttp")
            for address in addresses(stage, target) {
                let one = try Program.run(nghttp, [address])
                let isSame = one.output == Data(image.bytes)
                #expect(isSame && one.status == 0, "\(one.errors)")
                let all = try Program.run(
                    nghttp, ["--null-out", "--stat", "--multiply=50", address])
                let rows = String(decoding: all.output, as: UTF8.self).split(separator: "\n")
                    .filter { $0.contains(" 200 ") && $0.contains("/v1/image") }
                #expect(rows.count == 50 && all.status == 0, "\(all.errors)")
                let range = try Program.run(
                    nghttp, ["--header=range: bytes=1000-1999", address])
                #expect(range.output == Data(image.bytes(1_000..<2_000)))
            }
            #expect(stage.origin.log.count == 1)
        }

        @Test("nghttp sends a body with trailers to a site", .enabled(if: has("nghttp")))
        func upload() throws {
            let (stage, _) = try stage()
            stage.origin.on("/it", .text("taken"))
            let folder = try TemporaryFolder()
            let file = folder.appending(path: "body")
            try Data(image.bytes).write(to: file)
            stage.origin.expectBody(image, at: "/it")
            let result = try Program.run(
                try Program.find("nghttp"),
                [
                    "--data=\(file.path)", "--trailer=x-sum: 42", "--no-content-length",
                    "--header=:authority: \(SecureStage.site)",
                ] + [addresses(stage, "/it")[0]])
            #expect(result.status == 0 && result.output == Data("taken".utf8), "\(result.errors)")
            let body = stage.origin.body(of: try #require(stage.origin.requests("/it").first))
            #expect(body.isComplete && body.isAsExpected && body.byteCount == image.byteCount)
            // Trailers are not forwarded to the site's origin.
            #expect(body.trailers["x-sum"] == nil, "\(body.trailers)")
        }

        @Test(
            "h2load sends a hundred thousand requests, and no resource leaks",
            .enabled(if: has("h2load")))
        func load() throws {
            let stage = try SecureStage()
            let small = TestImage.generated(.jpeg, byteCount: 1_000, seed: 681)
            let path = stage.origin.serve(small, fields: [lasting])
            let target = ImageRequestTarget.forURL(stage.origin.url(path))
            let h2load = try Program.find("h2load")
            func run(_ count: Int) throws {
                for address in addresses(stage, target) {
                    let result = try Program.run(
                        h2load,
                        ["--requests=\(count)", "--clients=20", "--max-concurrent-streams=20"]
                            + [address], seconds: 300)
                    let said = String(decoding: result.output, as: UTF8.self)
                    #expect(result.status == 0, "\(said) \(result.errors)")
                    #expect(
                        said.contains("\(count) succeeded, 0 failed, 0 errored, 0 timeout"),
                        "\(said)")
                    #expect(said.contains("status codes: \(count) 2xx"), "\(said)")
                }
            }
            // After this, everything that is created once and kept exists.
            try run(2_000)
            stage.waitForFigure("nuthatch_connections_open", 0)
            let (descriptors, bytes) = (stage.node.descriptorCount, stage.node.residentBytes)
            try run(50_000)
            stage.waitForFigure("nuthatch_connections_open", 0)
            expectSoon(20, "\(stage.node.descriptorCount) after \(descriptors)") {
                stage.node.descriptorCount <= descriptors
            }
            let more = stage.node.residentBytes - bytes
            #expect(more < 16 << 20, "\(more) bytes more")
        }

        /// A Python with httpx and HTTP/2; `nil` if it cannot be installed.
        private static let python = PythonTool.having(
            "httpx[http2]==0.28.1", in: "httpx", modules: ["httpx", "h2"])

        @Test("Python's httpx: a hundred concurrent images, a range, a condition, a streamed body")
        func httpx() throws {
            guard let python = Self.python else {
                return print("httpx cannot be installed; it is not tested")
            }
            let (stage, target) = try stage()
            stage.origin.on("/it", .text("taken"))
            let script = """
                import asyncio, hashlib, httpx, ssl, sys
                base, host, target, ca = sys.argv[1:]
                async def pieces():
                    for piece in range(50):
                        yield b"x" * 10000
                async def main():
                    trusting = ssl.create_default_context(cafile=ca)
                    async with httpx.AsyncClient(http2=True, verify=trusting, timeout=30) as client:
                        got = await asyncio.gather(*[client.get(base + target) for _ in range(100)])
                        print({(g.status_code, g.http_version, len(g.content)) for g in got})
                        print(len({hashlib.sha256(g.content).hexdigest() for g in got}))
                        part = await client.get(base + target, headers={"Range": "bytes=0-9"})
                        print(part.status_code, len(part.content))
                        same = await client.get(base + target, headers={"If-None-Match": '"v1"'})
                        print(same.status_code, len(same.content))
                        site = {"Host": host}
                        sent = await client.post(base + "/it", content=pieces(), headers=site)
                        print(sent.status_code, sent.text)
                asyncio.run(main())
                """
            let result = try Program.run(
                python,
                [
                    "-c", script, "https://127.0.0.1:\(stage.node.securePort)", SecureStage.site,
                    target, stage.authority.file,
                ], seconds: 60)
            #expect(result.status == 0, "\(result.errors)")
            let said = String(decoding: result.output, as: UTF8.self)
            #expect(said == "{(200, 'HTTP/2', 300000)}\n1\n206 10\n304 0\n200 taken\n")
            let request = try #require(stage.origin.requests("/it").first)
            #expect(stage.origin.body(of: request).byteCount == 500_000)
            #expect(stage.origin.requests("/" + image.name).count == 1)
        }
    }
}
