import Foundation
import Harness
import NIOCore
import NIOPosix
import Testing

extension Outside {
    @Suite("Bodies, trailers and interim responses pass over every protocol")
    struct SameBodiesTests {
        private let sent = TestImage.generated(.png, byteCount: 5_000_000, seed: 620)
        private let given = TestImage.generated(.jpeg, byteCount: 20_000_000, seed: 621)

        @Test("5 MB to a site's origin and 20 MB back", arguments: Way.allCases)
        func bothWays(way: Way) throws {
            let stage = try SecureStage()
            stage.origin.expectBody(sent, at: "/it")
            stage.origin.on("/it", OriginResponse(given))
            let folder = try TemporaryFolder()
            let file = folder.appending(path: "body")
            try Data(sent.bytes).write(to: file)
            // With a known length, and with an unknown length.
            let ways = [
                ["--data-binary", "@\(file.path)"],
                ["--request", "POST", "--header", "Transfer-Encoding: chunked", "--upload-file"]
                    + [file.path],
            ]
            for (index, more) in ways.enumerated() {
                let response = try way.ask(stage, "/it", host: SecureStage.site, more)
                let isSame = response.body == Data(given.bytes)
                #expect(
                    isSame && response.exitStatus == 0 && response.version == way.version,
                    "\(response)")
                let request = try #require(stage.origin.requests("/it").dropFirst(index).first)
                let body = stage.origin.body(of: request)
                #expect(body.isComplete && body.isAsExpected && body.byteCount == 5_000_000)
                #expect(request.method == "POST" && request.version == "HTTP/1.1")
            }
        }

        @Test("Trailers of the origin follow the body", arguments: Way.allCases)
        func trailers(way: Way) async throws {
            let group = MultiThreadedEventLoopGroup.singleton
            let origin = try await ByteOrigin.listening(
                on: group,
                [
                    .awaitRequestHead,
                    .send(
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n"
                            + "Cache-Control: no-store\r\n\r\n5\r\nhello\r\n"),
                    .send("0\r\nX-Sum: 42\r\n\r\n"),
                ])
            let stage = try SecureStage("--site", "*=http://127.0.0.1:\(origin.port)")
            let response = try way.ask(
                stage, "/it", host: "unknown.example",
                ["--insecure", "--header", "TE: trailers", "--header", "Connection: TE"])
            #expect(response.exitStatus == 0 && response.text == "hello", "\(response)")
            #expect(response["X-Sum"] == "42", "\(response)")
        }

        @Test("Interim responses precede the final response", arguments: Way.allCases)
        func interim(way: Way) throws {
            let stage = try SecureStage()
            let head = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
            let rest =
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: no-store\r\n\r\nhello"
            stage.origin.on("/it", .raw(Array((head + rest).utf8)))
            let response = try way.ask(stage, "/it", host: SecureStage.site)
            #expect(response.exitStatus == 0 && response.text == "hello", "\(response)")
            #expect(response.status == 200 && response.interim == [103], "\(response)")
        }

        @Test(
            "The origin receives the client's scheme, https or http", arguments: Way.allCases
        )
        func scheme(way: Way) throws {
            let stage = try SecureStage()
            stage.origin.on("/it", .text("ok", fields: ["Cache-Control: no-store"]))
            let forwarded = ["--header", "Forwarded: for=192.0.2.1"]
            #expect(try way.ask(stage, "/it", host: SecureStage.site, forwarded).text == "ok")
            let request = try #require(stage.origin.requests("/it").first)
            let scheme = way.rawValue.contains("TLS") ? "https" : "http"
            #expect(request.fields["X-Forwarded-Proto"] == scheme, "\(request.fields)")
            #expect(request.fields["X-Forwarded-For"] == "127.0.0.1")
            #expect(request.fields["X-Forwarded-Host"]?.hasPrefix(SecureStage.site) == true)
            #expect(request.fields["Forwarded"]?.contains("proto=\(scheme)") == true)
            #expect(request.fields["Via"]?.hasPrefix(way.version.prefix(3)) == true, "\(request)")
        }

        @Test("An aborted body never looks complete", arguments: Way.allCases)
        func brokenOff(way: Way) throws {
            let stage = try SecureStage()
            let image = TestImage.generated(.jpeg, byteCount: 400_000, seed: 622)
            let framings: [OriginResponse.Framing] = [.length, .chunked(bytesMax: 50_000)]
            for (index, framing) in framings.enumerated() {
                for cut in [OriginResponse.Disconnect.close, .reset] {
                    for host in [SecureStage.images, SecureStage.site] {
                        let (path, gate) = ("/\(index)-\(cut)-\(host)", Gate())
                        stage.origin.on(
                            path,
                            OriginResponse(image, framing: framing)
                                .stalling(at: 200_000, .gate(gate)).truncated(after: 200_000, cut))
                        let target =
                            host == SecureStage.site
                            ? path : ImageRequestTarget.forURL(stage.origin.url(path))
                        let running = try stage.curl.start(
                            way.options + [way.url(stage, target, host: host)])
                        expectSoon(20) { running.bodyByteCount > 0 }
                        gate.open()
                        let response = running.wait()
                        #expect([18, 56, 92].contains(response.exitStatus), "\(path): \(response)")
                        #expect(response.body.count < 400_000)
                    }
                }
            }
        }

        @Test("An aborted body looks incomplete to HTTP/1.0 over TLS, where only the close ends it")
        func brokenOffOld() throws {
            let stage = try SecureStage()
            let image = TestImage.generated(.jpeg, byteCount: 400_000, seed: 623)
            for cut in [OriginResponse.Disconnect.close, .reset] {
                let gate = Gate()
                // A response that is not stored is not waited for, either.
                stage.origin.on(
                    "/\(cut)",
                    OriginResponse(
                        image, framing: .chunked(bytesMax: 50_000),
                        fields: ["Cache-Control: no-store"]
                    ).stalling(at: 200_000, .gate(gate)).truncated(after: 200_000, cut))
                let running = try stage.curl.start(["--http1.0", stage.image("/\(cut)")])
                expectSoon(20) { running.bodyByteCount > 0 }
                gate.open()
                let response = running.wait()
                #expect(
                    response.exitStatus == 56 && response["Content-Length"] == nil, "\(response)")
            }
        }
    }
}
