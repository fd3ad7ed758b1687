import Foundation
import Harness
import Testing

extension Outside {
    @Suite("HTTP/2 streams are isolated from each other")
    struct StreamTests {
        private let token = "a-token-of-operators"

        @Test("Remains of an aborted response do not appear in the next one")
        func leftovers() throws {
            let folder = try TemporaryFolder()
            let file = try folder.write(token, to: "token")
            let stage = try SiteStage("--loops", "1", "--decision-token-file", file.path)
            let image = TestImage.generated(.jpeg, byteCount: 400_000, seed: 690)
            stage.origin.on("/it", .text("ok"))
            var curl = Curl()
            curl.hosts = [SiteStage.host, "other.example"]
            let base = "http://\(SiteStage.host):\(stage.node.port)"
            for _ in 0..<3 {
                let gate = Gate()
                stage.origin.on(
                    "/cut",
                    OriginResponse(image).stalling(at: 200_000, .gate(gate))
                        .truncated(after: 200_000, .close))
                let running = try curl.start([
                    "--http2-prior-knowledge", "--header", "Nuthatch-Decision: \(token)",
                    base + "/cut",
                ])
                expectSoon(20) { running.bodyByteCount > 0 }
                gate.open()
                let cut = running.wait()
                #expect(cut.exitStatus == 92 && cut["Nuthatch-Decision"] != nil, "\(cut)")
            }
            for url in [base + "/it", "http://other.example:\(stage.node.port)/healthz"] {
                let next = try curl("--http2-prior-knowledge", url)
                let isOfSite = url.hasPrefix(base)
                #expect(next.status == 200 && next["Nuthatch-Decision"] == nil, "\(next)")
                #expect(next.fields.all("Cache-Status").count == (isOfSite ? 1 : 0), "\(next)")
            }
        }

        @Test("An unwanted request body is read to its end, and the response follows it")
        func unwanted() throws {
            let stage = try Stage("--request-body-limit", "64KiB", "--body-timeout", "1s")
            defer { withExtendedLifetime(stage) {} }
            let client = try HTTP2Client(port: stage.node.port)
            try client.send(.settingsAcknowledgement)
            func begin(_ fields: [(String, String)] = []) throws -> UInt32 {
                let stream = client.nextStreamID()
                try client.send(
                    .request(
                        stream, "/healthz", method: "POST", fields: fields, hasBody: true))
                return stream
            }
            let piece = [UInt8](repeating: 1, count: 10_000)

            let stream = try begin()
            for _ in 0..<5 { try client.send(HTTP2Frame(.data, stream: stream, payload: piece)) }
            // The reply to PING arrives when everything before it was read.
            try client.send(.ping())
            var isEarly = false
            let isRead = client.next { frame in
                if frame.stream == stream, frame.kind == .headers { isEarly = true }
                return frame.kind == .ping
            }
            #expect(isRead != nil && !isEarly)
            try client.send(HTTP2Frame(.data, flags: HTTP2Frame.endStream, stream: stream))
            let response = try client.response(on: stream)
            #expect(response.isWhole && response.status == nil, "405 has no number of its own")

            let long = try begin()
            for _ in 0..<7 { try client.send(HTTP2Frame(.data, stream: long, payload: piece)) }
            #expect(try client.response(on: long).isWhole)
            let claimed = try begin([("content-length", "1000000")])
            #expect(try client.response(on: claimed).isWhole)
            let slow = try begin()
            #expect(try client.response(on: slow).isWhole)
            #expect(stage.node.metric("nuthatch_timeouts_total{kind=\"body\"}") == 1)
            #expect(try client.get("/healthz").status == 200)
        }
    }
}
