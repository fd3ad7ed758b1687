import Foundation
import Harness
import Testing

extension Outside {
    /// Requests over HTTP/2 and TLS are handled by the same code, with the same responses.
    @Suite("curl gets the same responses over every protocol")
    struct SameResponsesTests {
        private static let image = TestImage.generated(.jpeg, byteCount: 250_000, seed: 610)

        /// Arguments of curl for requests to the image interface, each sent twice, cold and warm.
        private static let asks: [[String]] = [
            [], ["--head", "--output", "/dev/null"], ["--range", "0-99"], ["--range", "-100"],
            ["--range", "249999-"],
            ["--range", "0-9,100-109,-5"], ["--range", "250000-"],
            ["--header", "If-None-Match: \"v1\""], ["--header", "If-None-Match: \"v0\""],
            ["--header", "If-Match: \"v0\""],
            ["--time-cond", ConditionalTests.modified], ["--time-cond", ConditionalTests.earlier],
            ["--range", "0-9", "--header", "If-Range: \"v1\""],
            ["--range", "0-9", "--header", "If-Range: \"v0\""],
            ["--compressed"], ["--request", "DELETE"], ["--data", "a body that nobody asked for"],
        ]

        /// Targets that are no image, with the reason.
        private static let targets = [
            "/v1/image", "/v1/image?url=nothing", "/v1/image?url=http%3A%2F%2F10.0.0.1%2F",
            "/v1/image?url=" + String(repeating: "a", count: 9_000), "/healthz", "/other",
        ]

        /// Fields that differ between any two responses, or belong to the connection.
        private static let own: Set = [
            "date", "age", "connection", "keep-alive", "transfer-encoding", "cache-status",
            "x-request-id",
        ]

        /// The part of a response that must be the same.
        private struct Same: Equatable, CustomStringConvertible {
            var status: Int
            var fields: [String]
            var body: Data

            init(_ response: Curl.TransferResult) {
                status = response.status
                var boundary = ""
                if let type = response["Content-Type"], let equals = type.firstIndex(of: "=") {
                    boundary = String(type[type.index(after: equals)...])
                }
                fields = response.fields.lines
                    .filter { !own.contains($0.name.lowercased()) }
                    .map { "\($0.name.lowercased()): \($0.value)" }
                    .map { boundary.isEmpty ? $0 : $0.replacingOccurrences(of: boundary, with: "") }
                    .sorted()
                // For HEAD, curl writes the head here.
                body = response.body.starts(with: Data("HTTP/".utf8)) ? Data() : response.body
                guard !boundary.isEmpty, response.status == 206 else { return }
                let text = String(body.map { Character(Unicode.Scalar($0)) })
                body = Data(text.replacingOccurrences(of: boundary, with: "").utf8)
            }

            var description: String { "\(status) \(fields) \(body.count) bytes" }
        }

        private func stage() throws -> SecureStage {
            let stage = try SecureStage()
            let response = OriginResponse(
                Self.image,
                fields: [
                    lasting, "ETag: \"v1\"", "Last-Modified: \(ConditionalTests.modified)",
                ])
            stage.origin.onAnyOtherPath { _ in response }
            return stage
        }

        @Test(
            "Images: complete, ranges, conditions, methods; cold and from memory",
            arguments: Way.others)
        func images(way: Way) throws {
            let stage = try stage()
            for (index, ask) in Self.asks.enumerated() {
                let path = "/\(index)"
                for turn in ["cold", "warm"] {
                    let responses = try [Way.h1, way].map { other in
                        let target = ImageRequestTarget.forURL(stage.origin.url("\(path)-\(other)"))
                        return try other.ask(stage, target, host: SecureStage.images, ask)
                    }
                    #expect(responses[1].version == way.version)
                    #expect(
                        responses[0].exitStatus == responses[1].exitStatus,
                        "\(ask) \(turn): \(responses[1])")
                    #expect(Same(responses[0]) == Same(responses[1]), "\(ask) \(turn)")
                }
            }
            let whole = try way.ask(
                stage, ImageRequestTarget.forURL(stage.origin.url("/0-\(way)")),
                host: SecureStage.images)
            let isSame = whole.body == Data(Self.image.bytes)
            #expect(isSame && whole.exitStatus == 0)
        }

        @Test("Refusals are identical documents", arguments: Way.others)
        func refusals(way: Way) throws {
            let stage = try stage()
            for target in Self.targets {
                let (one, other) = (
                    try Way.h1.ask(stage, target, host: SecureStage.images),
                    try way.ask(stage, target, host: SecureStage.images)
                )
                #expect(
                    one.exitStatus == 0 && other.exitStatus == 0 && other.version == way.version)
                #expect(one.status != 0, "\(target.prefix(40)): \(one)")
                #expect(Same(one) == Same(other), "\(target.prefix(40))")
                guard target != "/healthz" else { continue }
                #expect(other["Content-Type"]?.hasPrefix("application/problem+json") == true)
            }
        }

        @Test(
            "A head above the limit gets 431, and the next request gets its response",
            arguments: Way.allCases)
        func largeHead(way: Way) throws {
            let stage = try stage()
            let long = ["--header", "X-Long: " + String(repeating: "a", count: 40_000)]
            let refused = try way.ask(stage, "/healthz", host: SecureStage.images, long)
            #expect(refused.status == 431 && refused.version == way.version, "\(refused)")
            #expect(try way.ask(stage, "/healthz", host: SecureStage.images).status == 200)
        }

        @Test("HTTP/1.0 over TLS gets the image, cold and warm, in any framing")
        func oldClient() throws {
            let stage = try stage()
            stage.origin.on(
                "/chunked", OriginResponse(Self.image, framing: .chunked(bytesMax: 9_999)))
            for path in ["/length", "/chunked"] {
                for _ in 0..<2 {
                    let response = try stage.curl("--http1.0", stage.image(path))
                    let isSame = response.body == Data(Self.image.bytes)
                    #expect(isSame && response.exitStatus == 0, "\(response)")
                }
            }
        }
    }
}
