import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A 304 applies only to the requests it concerns")
    struct RevalidationTests {
        private let avif = TestImage.generated(.avif, byteCount: 9_000, seed: 310)
        private let jpeg = TestImage.generated(.jpeg, byteCount: 8_000, seed: 311)

        @Test("Another variant's revalidation does not delay a request")
        func variants() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let (avif, jpeg, gate) = (avif, jpeg, Gate())
            stage.origin.on("/it") { request in
                if request.isConditional {
                    return .notModified(["ETag: \"a\"", "Vary: Accept"]).delayingHead(.gate(gate))
                }
                let takesAVIF = request.fields["Accept"]?.contains("avif") == true
                return OriginResponse(
                    takesAVIF ? avif : jpeg,
                    fields: [
                        "Cache-Control: max-age=0", "Vary: Accept",
                        "ETag: \"\(takesAVIF ? "a" : "j")\"",
                    ])
            }
            #expect(try stage.get("/it", fields: ["Accept: image/avif"]).matches(avif))
            let first = try stage.node.connect()
            try first.socket.send(
                HTTPConnection.request(stage.target("/it"), fields: ["Accept: image/avif"]))
            #expect(gate.waitForArrivals())
            let second = try stage.node.connect()
            try second.socket.send(
                HTTPConnection.request(stage.target("/it"), fields: ["Accept: image/png"]))
            // Its variant is known from its fields, so it need not wait.
            let other = second.readResponse()
            #expect(other.matches(jpeg), "\(other)")
            gate.open()
            #expect(first.readResponse().matches(avif))
        }

        @Test("A response made private by a 304 goes only to the requester")
        func nowPrivate() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let (jpeg, gate) = (jpeg, Gate())
            stage.origin.on("/it") { request in
                guard request.isConditional else {
                    return OriginResponse(
                        jpeg, fields: ["Cache-Control: max-age=0", "ETag: \"v\""])
                }
                return OriginResponse.notModified(["Cache-Control: private", "ETag: \"v\""])
                    .delayingHead(.gate(gate))
            }
            #expect(try stage.get("/it").matches(jpeg))
            let clients = ClientSwarm(
                port: stage.node.port, count: 3, .init(stage.target("/it"), expecting: jpeg))
            expectSoon(20) { stage.node.metric("nuthatch_waiters") == 3 }
            gate.open()
            #expect(clients.responses().allSatisfy { $0.matches(jpeg) })
            // Each of the others sends its own request, conditional if one of them has stored the
            // response.
            #expect(stage.fetches("/it") == 4)
        }

        @Test("A response made uncacheable by a 304 is not reported as stored")
        func noLongerStored() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let jpeg = jpeg
            stage.origin.on("/it") { request in
                request.isConditional
                    ? OriginResponse.notModified(["Cache-Control: no-store", "ETag: \"v\""])
                    : OriginResponse(jpeg, fields: ["Cache-Control: max-age=0", "ETag: \"v\""])
            }
            for (status, isStored) in [("200", true), ("304", false), ("200", true)] {
                let response = try stage.get("/it")
                #expect(response.matches(jpeg))
                let said = response.cacheStatus
                #expect(
                    said["fwd-status"] == status && (said["stored"] != nil) == isStored,
                    "\(response)")
            }
        }

        @Test(
            "A 304 for another representation than the stored one causes an unconditional request"
        )
        func mismatched() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let (jpeg, gate, last) = (jpeg, Gate(), Gate())
            let whole = OriginResponse(
                jpeg, fields: ["Cache-Control: max-age=0", "ETag: W/\"v\""])
            stage.origin.on("/it", whole)
            #expect(try stage.get("/it").matches(jpeg))
            stage.origin.on("/it") { request in
                guard request.isConditional else { return whole.delayingHead(.gate(last)) }
                return OriginResponse.notModified([lasting, "ETag: \"v\""]).delayingHead(
                    .gate(gate))
            }
            let clients = ClientSwarm(
                port: stage.node.port, count: 5, .init(stage.target("/it"), expecting: jpeg))
            expectSoon(20) { stage.node.metric("nuthatch_waiters") == 5 }
            gate.open()
            // All of them start again, and arrive before the response ends.
            #expect(last.waitForArrivals())
            expectSoon(20) { stage.node.metric("nuthatch_waiters") == 5 }
            last.open()
            let responses = clients.responses()
            #expect(responses.allSatisfy { $0.matches(jpeg) }, "\(responses)")
            #expect(stage.fetches("/it") == 3)
        }
    }
}
