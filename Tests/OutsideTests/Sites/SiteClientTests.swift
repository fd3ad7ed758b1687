import Foundation
import Harness
import Testing

extension Outside {
    /// Third-party clients, through a site.
    @Suite("Third-party clients of a site")
    struct SiteClientTests {
        private let image = TestImage.generated(.jpeg, byteCount: 300_000, seed: 510)

        private func stage() throws -> (SiteStage, path: String) {
            let stage = try SiteStage()
            let path = stage.origin.serve(image, fields: [lasting], etag: "\"v1\"")
            return (stage, path)
        }

        private func url(_ stage: SiteStage, _ path: String) -> String {
            "http://\(SiteStage.host):\(stage.node.port)\(path)"
        }

        private static func has(_ program: String) -> Bool {
            (try? Program.find(program)) != nil
        }

        private static let hasRequests: Bool = {
            guard let python = try? Program.find("python3") else { return false }
            return (try? Program.run(python, ["-c", "import requests"]).status) == 0
        }()

        private func curl(_ stage: SiteStage, _ arguments: String...) throws -> Data {
            let resolve = "\(SiteStage.host):\(stage.node.port):127.0.0.1"
            let result = try Program.run(
                try Program.find("curl"),
                ["--silent", "--show-error", "--max-time", "60", "--resolve", resolve] + arguments)
            #expect(result.status == 0, "\(arguments): \(result.errors)")
            return result.output
        }

        @Test("curl gets the same bytes cold, from the cache, compressed or not, in ranges")
        func curlGets() throws {
            let (stage, path) = try stage()
            let whole = Data(image.bytes)
            for ask in [[], [], ["--compressed"], ["--http1.0"], ["--range", "0-"]] {
                let isSame = try curl(stage, ask: ask + [url(stage, path)]) == whole
                #expect(isSame, "\(ask)")
            }
            let part = try curl(stage, "--range", "1000-1999", url(stage, path))
            #expect(part == whole[1_000..<2_000])
            #expect(stage.fetches(path) == 1)
        }

        private func curl(_ stage: SiteStage, ask: [String]) throws -> Data {
            let resolve = "\(SiteStage.host):\(stage.node.port):127.0.0.1"
            let result = try Program.run(
                try Program.find("curl"), ["--silent", "--resolve", resolve] + ask)
            return result.output
        }

        @Test("curl posts a form and a file, and puts a file")
        func curlSends() throws {
            let (stage, _) = try stage()
            stage.origin.on("/form") { .text("\($0.method) \($0.fields["Content-Type"] ?? "")") }
            let form = try curl(stage, "--data", "a=b&c=d", url(stage, "/form"))
            #expect(
                String(decoding: form, as: UTF8.self) == "POST application/x-www-form-urlencoded")
            let first = try #require(stage.origin.requests("/form").first)
            #expect(stage.origin.body(of: first).text == "a=b&c=d")
            let folder = try TemporaryFolder()
            let file = folder.appending(path: "large")
            try Data(image.bytes).write(to: file)
            stage.origin.expectBody(image, at: "/file")
            stage.origin.on("/file") { .text($0.method) }
            let put = try curl(stage, "--upload-file", file.path, url(stage, "/file"))
            #expect(String(decoding: put, as: UTF8.self) == "PUT")
            let second = try #require(stage.origin.requests("/file").first)
            let body = stage.origin.body(of: second)
            #expect(body.isComplete && body.isAsExpected && body.byteCount == image.byteCount)
        }

        @Test("curl uses the node as its proxy")
        func curlByProxy() throws {
            let (stage, path) = try stage()
            let proxy = "http://127.0.0.1:\(stage.node.port)"
            let asked = "http://\(SiteStage.host)\(path)"
            for _ in 0..<2 {
                let isSame = try curl(stage, "--proxy", proxy, asked) == Data(image.bytes)
                #expect(isSame)
            }
            #expect(stage.fetches(path) == 1)
        }

        @Test(
            "wget gets the same bytes, and resumes a download",
            .enabled(if: Self.has("wget"), "wget is not installed"))
        func wget() throws {
            let (stage, path) = try stage()
            let folder = try TemporaryFolder()
            let file = folder.appending(path: "it")
            let ask = [
                "--quiet", "--header", "Host: \(SiteStage.host)", "--output-document", file.path,
                "http://127.0.0.1:\(stage.node.port)\(path)",
            ]
            let wget = try Program.find("wget")
            #expect(try Program.run(wget, ask).status == 0)
            #expect(try Data(contentsOf: file) == Data(image.bytes))
            try Data(image.bytes(0..<100_000)).write(to: file)
            #expect(try Program.run(wget, ["--continue"] + ask).status == 0)
            #expect(try Data(contentsOf: file) == Data(image.bytes))
            #expect(stage.fetches(path) == 1)
        }

        @Test(
            "Python's requests keeps one connection, and gets conditional responses",
            .enabled(if: Self.hasRequests, "Python's requests is not installed"))
        func requests() throws {
            let (stage, path) = try stage()
            let script = """
                import requests, sys
                session = requests.Session()
                url, host = sys.argv[1], {"Host": sys.argv[2]}
                first = session.get(url, headers=host)
                second = session.get(url, headers=host)
                same = dict(host, **{"If-None-Match": first.headers["ETag"]})
                third = session.get(url, headers=same)
                sent = session.post(url, headers=host, data=b"x" * 100000)
                print(first.status_code, len(first.content), first.content == second.content,
                      third.status_code, len(third.content), sent.status_code)
                """
            let address = "http://127.0.0.1:\(stage.node.port)\(path)"
            let result = try Program.run(
                try Program.find("python3"), ["-c", script, address, SiteStage.host])
            #expect(result.status == 0, "\(result.errors)")
            let said = String(decoding: result.output, as: UTF8.self)
            #expect(said == "200 300000 True 304 0 200\n")
            #expect(stage.origin.requests(path).map(\.method) == ["GET", "POST"])
        }
    }
}
