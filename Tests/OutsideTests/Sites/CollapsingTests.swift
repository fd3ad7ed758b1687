import Harness
import Testing

extension Outside {
    @Suite("Many clients of one URL of a site")
    struct CollapsingTests {
        private func textResponse(_ text: String, _ fields: String...) -> OriginResponse {
            .text(text, fields: fields)
        }

        @Test("A hundred clients of a cold URL cause one fetch")
        func cold() throws {
            let stage = try SiteStage()
            let gate = Gate()
            stage.origin.on("/it", textResponse("all", lasting).delayingHead(.gate(gate)))
            let swarm = stage.swarm("/it", Array(repeating: [], count: 100))
            #expect(gate.waitForArrivals() && swarm.waitForConnections())
            gate.open()
            #expect(swarm.responses().allSatisfy { $0.status == 200 && $0.bodyByteCount == 3 })
            #expect(stage.fetches("/it") == 1)
        }

        @Test("Cache-Status shows the requests that were collapsed into another's fetch")
        func collapsed() throws {
            let stage = try SiteStage()
            let gate = Gate()
            stage.origin.on("/it", textResponse("all", lasting).delayingHead(.gate(gate)))
            let first = stage.swarm("/it", [[]])
            #expect(gate.waitForArrivals())
            let others = stage.swarm("/it", Array(repeating: [], count: 9))
            #expect(others.waitForConnections())
            try stage.waitForWaiters(10)
            gate.open()
            #expect(first.responses().allSatisfy { $0.cacheStatus["collapsed"] == nil })
            let collapsedCount = others.responses().count { $0.cacheStatus["collapsed"] != nil }
            #expect(collapsedCount == 9)
            #expect(stage.fetches("/it") == 1)
        }

        @Test("A private response is fetched by each client itself, all concurrently")
        func privateResponse() throws {
            let stage = try SiteStage()
            let (first, others) = (Gate(), Gate())
            let count = LockedBox(0)
            stage.origin.on("/it") { _ in
                let number = count.change { count in
                    count += 1
                    return count
                }
                let response = textResponse("for \(number)", "Cache-Control: private")
                return response.delayingHead(.gate(number == 1 ? first : others))
            }
            let swarm = stage.swarm("/it", Array(repeating: [], count: 20))
            #expect(first.waitForArrivals() && swarm.waitForConnections())
            first.open()
            // All of them wait at the origin together: none waits for another.
            #expect(others.waitForArrivals(19))
            others.open()
            let responses = swarm.responses()
            #expect(responses.allSatisfy { $0.status == 200 && $0.isWhole })
            #expect(stage.fetches("/it") == 20)
        }

        @Test(
            "A URL with uncacheable responses is remembered, so that no request waits for another"
        )
        func hitForMiss() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", textResponse("mine", "Cache-Control: no-store"))
            _ = try stage.get("/it")
            let gate = Gate()
            stage.origin.on(
                "/it", textResponse("mine", "Cache-Control: no-store").delayingHead(.gate(gate)))
            let swarm = stage.swarm("/it", Array(repeating: [], count: 20))
            #expect(gate.waitForArrivals(20))
            gate.open()
            #expect(swarm.responses().allSatisfy { $0.status == 200 && $0.bodyByteCount == 4 })
        }

        @Test("A URL whose responses become cacheable is stored again")
        func sharedAgain() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", textResponse("mine", "Cache-Control: private"))
            _ = try stage.get("/it")
            stage.origin.on("/it", textResponse("ours", lasting))
            #expect(try stage.get("/it").text == "ours")
            #expect(try stage.get("/it").isHit)
            #expect(stage.fetches("/it") == 2)
        }

        @Test("Clients of two variants cause two fetches")
        func variants() throws {
            let stage = try SiteStage()
            let origin = stage.origin
            origin.on("/it") { request in
                textResponse("of \(request.fields["Foo"] ?? "nobody")", lasting, "Vary: Foo")
            }
            #expect(try stage.get("/it", fields: ["Foo: 0"]).text == "of 0")
            let gate = Gate()
            origin.on("/it") { request in
                textResponse("of \(request.fields["Foo"] ?? "nobody")", lasting, "Vary: Foo")
                    .delayingHead(.gate(gate))
            }
            let fields = (0..<100).map { ["Foo: \(1 + $0 % 2)"] }
            let swarm = stage.swarm("/it", fields)
            #expect(gate.waitForArrivals(2) && swarm.waitForConnections())
            gate.open()
            #expect(swarm.responses().allSatisfy { $0.status == 200 && $0.bodyByteCount == 4 })
            #expect(stage.fetches("/it") == 3)
            for value in 0...2 {
                let response = try stage.get("/it", fields: ["Foo: \(value)"])
                #expect(response.isHit && response.text == "of \(value)", "\(response)")
            }
        }

        @Test("Clients of several variants of a cold URL cause at most one fetch for each")
        func coldVariants() throws {
            let stage = try SiteStage()
            stage.origin.on("/it") { request in
                textResponse("of \(request.fields["Foo"] ?? "nobody")", lasting, "Vary: Foo")
            }
            let fields = (0..<60).map { ["Foo: \($0 % 3)"] }
            let responses = stage.swarm("/it", fields).responses()
            for (index, response) in responses.enumerated() {
                #expect(response.status == 200 && response.bodyByteCount == 4, "\(index)")
            }
            #expect(stage.fetches("/it") == 3)
            for value in 0..<3 {
                let response = try stage.get("/it", fields: ["Foo: \(value)"])
                #expect(response.text == "of \(value)", "\(response)")
            }
        }

        @Test("One revalidation serves all clients")
        func revalidation() throws {
            let stage = try SiteStage()
            let gate = Gate()
            stage.origin.on("/it") { request in
                guard request.isConditional else {
                    return .text("all", fields: ["Cache-Control: max-age=0", "ETag: \"a\""])
                }
                return OriginResponse.notModified([lasting, "ETag: \"a\""]).delayingHead(
                    .gate(gate))
            }
            _ = try stage.get("/it")
            let swarm = stage.swarm("/it", Array(repeating: [], count: 50))
            #expect(gate.waitForArrivals() && swarm.waitForConnections())
            try stage.waitForWaiters(50)
            gate.open()
            #expect(swarm.responses().allSatisfy { $0.status == 200 && $0.bodyByteCount == 3 })
            #expect(stage.fetches("/it") == 2)
        }

        @Test("Many clients of a stale response cause one background request")
        func background() throws {
            let stage = try SiteStage()
            let gate = Gate()
            let fields = ["Cache-Control: max-age=10, stale-while-revalidate=1000", "ETag: \"a\""]
            stage.origin.on("/it") { request in
                guard request.isConditional else {
                    return .text("all", fields: fields + ["Age: 100"])
                }
                return OriginResponse.notModified(fields).delayingHead(.gate(gate))
            }
            _ = try stage.get("/it")
            let responses = stage.swarm("/it", Array(repeating: [], count: 50)).responses()
            #expect(responses.allSatisfy { $0.status == 200 && $0.bodyByteCount == 3 })
            #expect(gate.waitForArrivals())
            #expect(stage.fetches("/it") == 2)
            gate.open()
            try expectSoon(20) { try stage.get("/it")["Age"].flatMap { Int($0) } ?? 100 < 100 }
        }

        @Test(
            "A stale response of one variant is not served to clients that wait for another",
            arguments: [false, true])
        func standIn(isOnDisk: Bool) throws {
            let stage = try SiteStage("--disk-limit", "64MiB", keepsDisk: true)
            let granted = ["Cache-Control: max-age=10, stale-if-error=1000", "Vary: Foo"]
            stage.origin.on("/it", .text("the first", fields: granted + ["Age: 100"]))
            _ = try stage.get("/it", fields: ["Foo: 1"])
            if isOnDisk {
                try stage.settle(entries: 2)
                try stage.restart()
            }
            let gate = Gate()
            stage.origin.on("/it") { request in
                request.fields["Foo"] == "1"
                    ? .text("no", status: "503 Service Unavailable").delayingHead(.gate(gate))
                    : .text("other", fields: granted)
            }
            let first = stage.swarm("/it", [["Foo: 1"]])
            #expect(gate.waitForArrivals())
            let second = stage.swarm("/it", Array(repeating: ["Foo: 2"], count: 5))
            #expect(second.waitForConnections())
            // Nothing in memory indicates a Vary yet: they wait for the first response.
            if isOnDisk { try stage.waitForWaiters(6) }
            gate.open()
            #expect(first.responses().allSatisfy { $0.status == 200 && $0.bodyByteCount == 9 })
            let others = second.responses()
            #expect(others.allSatisfy { $0.status == 200 && $0.bodyByteCount == 5 }, "\(others)")
        }

        @Test("A request that waits too long for another's fetch sends its own")
        func waitedTooLong() throws {
            let stage = try SiteStage("--wait-timeout", "300ms")
            let gate = Gate()
            stage.origin.on("/it", textResponse("late", lasting).delayingHead(.gate(gate)))
            let first = stage.swarm("/it", [[]])
            #expect(gate.waitForArrivals())
            stage.origin.on("/it", textResponse("soon", lasting))
            let second = stage.swarm("/it", [[]]).responses()
            #expect(second.allSatisfy { $0.status == 200 && $0.bodyByteCount == 4 })
            #expect(stage.fetches("/it") == 2)
            #expect(first.responses().allSatisfy { $0.status == 503 })
            gate.open()
        }

        @Test("A POST does not wait for a GET of the same URL")
        func postBesideGet() throws {
            let stage = try SiteStage()
            let gate = Gate()
            stage.origin.on("/it") { request in
                let response = OriginResponse.text(request.method, fields: [lasting])
                return request.method == "GET" ? response.delayingHead(.gate(gate)) : response
            }
            let swarm = stage.swarm("/it", [[]])
            #expect(gate.waitForArrivals())
            #expect(try stage.send("POST", "/it", body: "x").text == "POST")
            gate.open()
            #expect(swarm.responses().allSatisfy { $0.bodyByteCount == 3 })
            // A response requested before the POST may be older than its effect.
            _ = try stage.get("/it")
            #expect(stage.fetches("/it") == 3)
        }
    }
}
