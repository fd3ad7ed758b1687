import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Streams share no state, and connections end when they should")
    struct StreamLifeTests {
        private let image = TestImage.generated(.jpeg, byteCount: 60_000, seed: 690)

        @Test("The decision of an abandoned response does not appear in another response")
        func abandoned() throws {
            let folder = try TemporaryFolder()
            let token = try folder.write("0123456789abcdef0123\n", to: "token")
            let origin = try ScriptedOrigin()
            let node = try NodeProcess(
                [
                    "--loops", "1", "--site", "a.example=\(origin.url(""))",
                    "--decision-token-file", token.path,
                ])
            let stage = Stage(origin: origin, node: node)
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            let path = origin.serve(image, fields: [lasting])
            #expect(try node.get(path, host: "a.example").matches(image))
            let slow = "/slow"
            origin.on(slow, OriginResponse(image).stalling(at: 30_000, .gate(gate)))
            // The client disconnects in mid-body, after the head with the decision was sent.
            let first = try HTTP2Client(port: node.port)
            let stream = first.nextStreamID()
            try first.send(
                .request(
                    stream, slow, host: "a.example",
                    fields: [("nuthatch-decision", "0123456789abcdef0123")]))
            _ = first.next { $0.kind == .data }
            try first.send(.reset(stream, 8))
            #expect(try first.get("/healthz").status == 200)
            gate.open()
            let second = try Program.run(
                try Program.find("curl"),
                [
                    "--silent", "--include", "--http2-prior-knowledge", "--output", "-",
                    "--header", "Host: a.example", "--head",
                    "http://127.0.0.1:\(node.port)\(path)",
                ])
            let head = String(decoding: second.output, as: UTF8.self).lowercased()
            #expect(head.contains("cache-status: nuthatch; hit"), "\(head)")
            #expect(head.components(separatedBy: "cache-status").count == 2, "\(head)")
            #expect(!head.contains("nuthatch-decision"), "\(head)")
        }

        @Test("A node that stops does not wait for a silent client")
        func silentClient() throws {
            let stage = try Stage("--drain-timeout", "60s")
            defer { withExtendedLifetime(stage) {} }
            let client = try HTTP2Client(port: stage.node.port)
            #expect(try client.get("/healthz").status == 200)
            stage.node.terminate()
            #expect(client.waitForGoAway() == 0)
            // The client does not reply to PING.
            #expect(client.waitForEnd() == .truncated)
            #expect(stage.node.waitForExit(seconds: 30) == 0)
        }

        @Test("A refused HEAD request has no body")
        func refusedHead() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let result = try Program.run(
                try Program.find("curl"),
                [
                    "--silent", "--show-error", "--include", "--http2-prior-knowledge", "--head",
                    "--header", "Expect: the-moon", "http://127.0.0.1:\(stage.node.port)/",
                ])
            #expect(result.status == 0, "\(result.errors)")
            #expect(String(decoding: result.output, as: UTF8.self).hasPrefix("HTTP/2 417"))
        }
    }
}
