import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A request keeps its id and trace on the way to owner and origin")
    struct TraceTests {
        private let image = TestImage.generated(.jpeg, byteCount: 12_345, seed: 870)
        private static let trace = "0af7651916cd43dd8448eb211c80319c"
        private static let parent = "b7ad6b7169203331"
        private static let traceparent = "traceparent: 00-\(trace)-\(parent)-01"

        /// The trace fields of a request that an origin received.
        private struct TraceFields: Hashable {
            let trace: Substring
            let parent: Substring
            let flags: Substring

            init?(_ request: OriginRequest) {
                let lines = request.fields.all("traceparent")
                guard lines.count == 1,
                    let match = lines[0].wholeMatch(
                        of: /00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/)
                else { return nil }
                (trace, parent, flags) = (match.1, match.2, match.3)
            }
        }

        /// Returns the access log lines of a node with this request id.
        private func lines(_ node: NodeProcess, _ id: String) -> [[String: Any]] {
            node.standardOutput.split(separator: "\n").compactMap { line in
                let object = try? JSONSerialization.jsonObject(with: Data(line.utf8))
                let members = object as? [String: Any]
                return members?["request_id"] as? String == id ? members : nil
            }
        }

        @Test("With any owner, each hop has the same request id and trace and a new parent")
        func cluster() throws {
            let stage = try ClusterStage(2, keepsOnDisk: false, "--access-log", "json")
            let images = (0..<20).map {
                TestImage.generated(.jpeg, byteCount: 5_000, seed: UInt64(880 + $0))
            }
            let paths = images.map { stage.origin.serve($0, fields: [lasting]) }
            for (number, path) in paths.enumerated() {
                let response = try stage.nodes[0].get(
                    stage.target(path),
                    fields: [
                        "X-Request-Id: request-\(number)", Self.traceparent,
                        "tracestate: k=v, l=w",
                    ])
                #expect(response.status == 200 && response["X-Request-Id"] == "request-\(number)")
                let requests = stage.origin.requests(path)
                #expect(requests.count == 1)
                #expect(requests[0].fields.all("X-Request-Id") == ["request-\(number)"])
                #expect(requests[0].fields.all("tracestate") == ["k=v,l=w"])
                let received = try #require(TraceFields(requests[0]), "\(requests[0])")
                #expect(received.trace == Self.trace && received.flags == "01")
                #expect(received.parent != Self.parent)
            }
            let parents = paths.compactMap { TraceFields(stage.origin.requests($0)[0])?.parent }
            #expect(Set(parents).count == paths.count)
            for node in stage.nodes { #expect(node.stop() == 0) }
            var byOwner = 0
            for number in paths.indices {
                let asked = lines(stage.nodes[0], "request-\(number)")
                #expect(asked.count == 1 && asked[0]["port"] as? String == "data")
                #expect(asked.first?["trace_id"] as? String == Self.trace)
                let owner = lines(stage.nodes[1], "request-\(number)")
                guard !owner.isEmpty else { continue }
                byOwner += 1
                #expect(asked.first?["outcome"] as? String == "peer")
                #expect(owner.count == 1 && owner[0]["port"] as? String == "peer", "\(owner)")
                #expect(owner[0]["trace_id"] as? String == Self.trace)
                #expect(owner[0]["outcome"] as? String == "miss")
                #expect(owner[0]["status"] as? Int == 200)
                #expect(owner[0]["body_bytes"] as? Int == 5_000)
                #expect(owner[0]["complete"] as? Bool == true)
            }
            #expect(byOwner > 0 && byOwner < paths.count, "\(byOwner)")
        }

        @Test("Combined log lines are written for clients only")
        func combined() throws {
            let stage = try ClusterStage(2, keepsOnDisk: false, "--access-log", "combined")
            for number in 0..<20 {
                let image = TestImage.generated(
                    .jpeg, byteCount: 5_000, seed: UInt64(900 + number))
                let path = stage.origin.serve(image, fields: [lasting])
                _ = try stage.nodes[0].get(stage.target(path), fields: ["X-Request-Id: r\(number)"])
            }
            for node in stage.nodes { #expect(node.stop() == 0) }
            let counts = stage.nodes.map { node in
                node.standardOutput.split(separator: "\n").count { $0.contains("/v1/image?url=") }
            }
            #expect(counts == [20, 0])
        }

        @Test("A request coalesced with another's fetch adds no trace of its own at the origin")
        func coalesced() throws {
            let stage = try Stage("--access-log", "json")
            let gate = Gate()
            stage.origin.on(
                "/slow", OriginResponse(image, fields: [lasting]).delayingHead(.gate(gate)))
            func plan(_ id: String, _ trace: String) -> SwarmClientPlan {
                SwarmClientPlan(
                    stage.target("/slow"),
                    fields: ["X-Request-Id: \(id)", "traceparent: 00-\(trace)-\(Self.parent)-00"],
                    expecting: image)
            }
            let other = String(repeating: "b", count: 32)
            let first = ClientSwarm(port: stage.node.port, [plan("first", Self.trace)])
            #expect(gate.waitForArrivals())
            let second = ClientSwarm(port: stage.node.port, [plan("second", other)])
            expectSoon(20) { stage.node.metric("nuthatch_waiters") == 2 }
            gate.open()
            #expect((first.responses() + second.responses()).allSatisfy { $0.matches(image) })
            let requests = stage.origin.requests("/slow")
            #expect(requests.count == 1 && requests[0].fields["X-Request-Id"] == "first")
            #expect(TraceFields(requests[0])?.trace == Self.trace[...])
            #expect(TraceFields(requests[0])?.flags == "00")
            #expect(stage.node.stop() == 0)
            #expect(lines(stage.node, "second").first?["trace_id"] as? String == other)
            #expect(lines(stage.node, "second").first?["outcome"] as? String == "collapsed")
        }

        @Test(
            "The node starts no trace and does not continue an invalid one",
            arguments: [
                [], ["tracestate: k=v"], ["traceparent: 00-\(trace)-0000000000000000-01"],
                [traceparent, traceparent], ["traceparent: ff-\(trace)-\(parent)-01"],
            ])
        func none(fields: [String]) throws {
            let stage = try Stage()
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path, fields: fields).matches(image))
            let sent = stage.origin.requests(path).map(\.fields)
            #expect(sent.count == 1 && sent[0]["traceparent"] == nil)
            #expect(sent[0]["tracestate"] == nil && sent[0]["X-Request-Id"] != nil)
        }

        @Test("Trace fields reach a site's origin, stored or passed through, and redirect targets")
        func elsewhere() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", .text("ok", fields: [lasting]))
            let fields = ["X-Request-Id: mine", Self.traceparent, "tracestate: k=v"]
            _ = try stage.get("/it", fields: fields)
            _ = try stage.get("/it", method: "DELETE", fields: fields)
            let requests = stage.origin.requests("/it")
            #expect(requests.count == 2)
            for request in requests {
                let received = try #require(TraceFields(request), "\(request)")
                #expect(received.trace == Self.trace && received.parent != Self.parent)
                #expect(request.fields.all("tracestate") == ["k=v"])
                #expect(request.fields.all("X-Request-Id") == ["mine"])
            }
            let images = try Stage()
            let path = images.origin.serve(image, fields: [lasting])
            images.origin.on(
                "/moved",
                .text("", status: "302 Found", fields: ["Location: \(images.origin.url(path))"]))
            #expect(try images.get("/moved", fields: fields).matches(image))
            #expect(images.origin.requests(path).compactMap(TraceFields.init).count == 1)
        }
    }
}
