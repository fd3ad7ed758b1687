import Foundation
import Harness
import Testing

extension Outside {
    /// A third-party client.
    @Suite("curl gets what it requests")
    struct CurlTests {
        private let image = TestImage.generated(.jpeg, byteCount: 250_000, seed: 110)

        private func stage() throws -> (Stage, url: String) {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(
                image, fields: [lasting], etag: "\"v1\"", lastModified: ConditionalTests.modified)
            return (stage, "http://127.0.0.1:\(stage.node.port)\(stage.target(path))")
        }

        private func curl(_ arguments: String...) throws -> Data {
            let result = try Program.run(
                try Program.find("curl"),
                ["--silent", "--show-error", "--max-time", "60"] + arguments)
            #expect(result.status == 0, "\(arguments): \(result.errors)")
            return result.output
        }

        private func text(_ data: Data) -> String { String(decoding: data, as: UTF8.self) }

        @Test("The image: cold, from memory, compressed or not, with HTTP/1.0 and twice at once")
        func get() throws {
            let (stage, url) = try stage()
            defer { withExtendedLifetime(stage) {} }
            let whole = Data(image.bytes)
            let asks: [[String]] = [[], [], ["--compressed"], ["--http1.0"], ["--path-as-is"]]
            for ask in asks {
                let result = try Program.run(
                    try Program.find("curl"), ["--silent", "--show-error"] + ask + [url])
                let isSame = result.status == 0 && result.output == whole
                #expect(isSame, "\(ask): \(result.errors)")
            }
            let isTwice = try curl(url, url) == whole + whole
            #expect(isTwice)
            #expect(stage.origin.log.count == 1)
        }

        @Test("HEAD has the length and no body")
        func head() throws {
            let (stage, url) = try stage()
            defer { withExtendedLifetime(stage) {} }
            defer { _ = stage }
            for _ in 0..<2 {
                let head = text(try curl("--head", url)).lowercased()
                #expect(head.hasPrefix("http/1.1 200"))
                #expect(head.contains("content-length: 250000\r\n"))
            }
        }

        @Test("A range, and several ranges")
        func range() throws {
            let (stage, url) = try stage()
            defer { withExtendedLifetime(stage) {} }
            defer { _ = stage }
            for _ in 0..<2 {
                let isSame = try curl("--range", "0-99", url) == Data(image.bytes(0..<100))
                #expect(isSame)
            }
            let parts = text(try curl("--include", "--range", "0-9,100-109", url))
            #expect(parts.contains("206") && parts.contains("multipart/byteranges"))
        }

        @Test("Conditions by date and by entity tag")
        func conditions() throws {
            let (stage, url) = try stage()
            defer { withExtendedLifetime(stage) {} }
            defer { _ = stage }
            _ = try curl(url)
            let status = ["--output", "/dev/null", "--write-out", "%{http_code} %{size_download}"]
            let run = { (ask: [String]) in
                let result = try Program.run(
                    try Program.find("curl"), ["--silent"] + status + ask + [url])
                return text(result.output)
            }
            #expect(try run(["--time-cond", ConditionalTests.modified]) == "304 0")
            #expect(try run(["--time-cond", ConditionalTests.earlier]) == "200 250000")
            #expect(try run(["--header", "If-None-Match: \"v1\""]) == "304 0")
            #expect(try run(["--header", "If-None-Match: \"v0\""]) == "200 250000")
        }

        @Test("curl keeps its connection for several images")
        func keepAlive() throws {
            let (stage, url) = try stage()
            defer { withExtendedLifetime(stage) {} }
            defer { _ = stage }
            let said = text(
                try curl(
                    "--output", "/dev/null", "--output", "/dev/null", "--write-out",
                    "%{num_connects} ", url, url))
            #expect(said == "1 0 ")
        }
    }
}
