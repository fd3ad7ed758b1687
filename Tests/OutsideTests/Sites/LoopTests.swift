import Foundation
import Harness
import Testing

extension Outside {
    /// Requests that lead back to the node are refused at once, without waiting.
    @Suite("Forwarding loops")
    struct LoopTests {
        private static let host = "a.example"
        private let folder: TemporaryFolder

        init() throws {
            folder = try TemporaryFolder()
        }

        /// Starts a node that requests the site from 127.0.0.1:`origin` like its clients.
        private func node(
            _ origin: Int, listeningOn port: Int? = nil, via: Bool = true
        ) throws -> NodeProcess {
            let text = """
                sites:
                  \(Self.host):
                    origin: http://127.0.0.1:\(origin)
                    host: client
                    via: \(via ? "on" : "off")

                """
            let file = try folder.write(text, to: "\(UUID().uuidString).yaml")
            let listen = port.map { ["--listen", "127.0.0.1:\($0)"] } ?? []
            return try NodeProcess(["--config", file.path] + listen)
        }

        private func expectLoop(
            _ response: Response, at location: SourceLocation = #_sourceLocation
        ) {
            expectProblem(response, 508, at: location)
            let type = response.document?["type"] as? String
            #expect(type == "urn:nuthatch:problem:loop-detected", sourceLocation: location)
        }

        @Test(
            "A site whose origin is the node itself, with or without Via",
            arguments: [true, false])
        func itself(via: Bool) throws {
            let port = try ReservedPort.forProcess()
            let node = try node(port, listeningOn: port, via: via)
            expectLoop(try node.get("/it", host: Self.host))
            expectLoop(try node.get("/it?other", host: Self.host))
            let post = try node.connect().post("body", to: "/it", host: Self.host)
            expectLoop(post)
            #expect(try node.get("/head", method: "HEAD", host: Self.host).status == 508)
            // Each went round once.
            #expect(node.metric("nuthatch_origin_fetches_started_total") == 4)
        }

        @Test("Concurrent clients of a looping URL get the same error")
        func together() throws {
            let port = try ReservedPort.forProcess()
            let node = try node(port, listeningOn: port)
            let clients = ClientSwarm(
                port: node.port, count: 20, SwarmClientPlan("/it", host: Self.host))
            let responses = clients.responses()
            #expect(
                responses.count == 20 && responses.allSatisfy { $0.status == 508 }, "\(responses)")
        }

        @Test("Two nodes that are each other's origin", arguments: [true, false])
        func ring(via: Bool) throws {
            let ports = try (0..<2).map { _ in try ReservedPort.forProcess() }
            let first = try node(ports[1], listeningOn: ports[0], via: via)
            let second = try node(ports[0], listeningOn: ports[1], via: via)
            expectLoop(try first.get("/it", host: Self.host))
            expectLoop(try second.get("/other", host: Self.host))
            expectLoop(try first.connect().post("body", to: "/it", host: Self.host))
        }

        @Test(
            "A chain of two nodes is no loop, and neither is an origin that sends further requests"
        )
        func noLoop() throws {
            let origin = try ScriptedOrigin()
            origin.onAnyOtherPath { _ in .text("it", fields: ["Cache-Control: no-store"]) }
            let port = try ReservedPort.forProcess()
            let inner = try node(origin.port, listeningOn: port, via: false)
            let outer = try node(port, via: false)
            #expect(try outer.get("/one", host: Self.host).text == "it")
            let marks = origin.requests("/one")[0].fields.all("CDN-Loop")
            #expect(marks.count == 2 && Set(marks).count == 2)
            #expect(marks.allSatisfy { $0.hasPrefix("nuthatch;id=") })
            #expect(origin.requests("/one")[0].fields["Via"] == nil)
            let lines = marks.map { "CDN-Loop: \($0)" }
            for node in [outer, inner] {
                #expect(try node.get("/two", host: Self.host, fields: lines).text == "it")
                expectLoop(try node.get("/one", host: Self.host, fields: lines))
            }
            #expect(origin.requests("/one").count == 1)
        }

        @Test("A request through another node waits for others' fetches, but not for long")
        func mutual() throws {
            let (origin, gate) = (try ScriptedOrigin(), Gate())
            defer { gate.open() }
            origin.on("/it", .text("it", fields: [lasting]).delayingHead(.gate(gate)))
            let node = try node(origin.port)
            let passage = "CDN-Loop: nuthatch;id=\(String(repeating: "0", count: 32))"
            let clients = try [[], [], [passage]].map { fields in
                let client = try node.connect()
                try client.socket.send(
                    HTTPConnection.request("/it", host: Self.host, fields: fields))
                #expect(gate.waitForArrivals(1))
                return client
            }
            expectSoon { origin.requests("/it").count == 2 }
            let passages = origin.requests("/it").map { $0.fields.all("CDN-Loop").count }
            #expect(passages == [1, 2])
            gate.open()
            for client in clients { #expect(client.readResponse().text == "it") }
        }

        @Test("A stored response is served even to a request that has looped")
        func stored() throws {
            let origin = try ScriptedOrigin()
            origin.on("/it", .text("it", fields: [lasting]))
            let node = try node(origin.port)
            #expect(try node.get("/it", host: Self.host).text == "it")
            let mark = try #require(origin.requests("/it")[0].fields["CDN-Loop"])
            let again = try node.get("/it", host: Self.host, fields: ["CDN-Loop: \(mark)"])
            #expect(again.text == "it" && again.isHit)
        }
    }
}
