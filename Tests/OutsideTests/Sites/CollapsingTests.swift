import Harness
import Testing

extension Outside {
    @Suite("Many clients of one address of a site")
    struct CollapsingTests {
        private func answer(_ text: String, _ fields: String...) -> OriginResponse {
            .text(text, fields: fields)
        }

        @Test("A hundred clients of a cold address make one fetch")
        func cold() throws {
            let stage = try SiteStage()
            let gate = Gate()
            stage.origin.on("/it", answer("all", lasting).delayingHead(.gate(gate)))
            let swarm = stage.swarm("/it", Array(repeating: [], count: 100))
            #expect(gate.waitForArrivals() && swarm.waitForConnections())
            gate.open()
            #expect(swarm.responses().allSatisfy { $0.status == 200 && $0.bodyByteCount == 3 })
            #expect(stage.fetches("/it") == 1)
        }

        @Test("Those who joined a fetch of another are told so")
        func collapsed() throws {
            let stage = try SiteStage()
            let gate = Gate()
            stage.origin.on("/it", answer("all", lasting).delayingHead(.gate(gate)))
            let first = stage.swarm("/it", [[]])
            #expect(gate.waitForArrivals())
            let others = stage.swarm("/it", Array(repeating: [], count: 9))
            #expect(others.waitForConnections())
            try stage.waitForWaiters(10)
            gate.open()
            #expect(first.responses().allSatisfy { $0.cacheStatus["collapsed"] == nil })
            let told = others.responses().count { $0.cacheStatus["collapsed"] != nil }
            #expect(told == 9)
            #expect(stage.fetches("/it") == 1)
        }

        @Test("An answer that is for one client only is fetched by each for itself, all at once")
        func privateAnswer() throws {
            let stage = try SiteStage()
            let (first, others) = (Gate(), Gate())
            let count = LockedBox(0)
            stage.origin.on("/it") { _ in
                let number = count.change { count in
                    count += 1
                    return count
                }
                let response = answer("for \(number)", "Cache-Control: private")
                return response.delayingHead(.gate(number == 1 ? first : others))
            }
            let swarm = stage.swarm("/it", Array(repeating: [], count: 20))
            #expect(first.waitForArrivals() && swarm.waitForConnections())
            first.open()
            // All of them wait at the origin together: none of them waits for another.
            #expect(others.waitForArrivals(19))
            others.open()
            let responses = swarm.responses()
            #expect(responses.allSatisfy { $0.status == 200 && $0.isWhole })
            #expect(stage.fetches("/it") == 20)
        }

        @Test("An address whose answers are not shared is remembered: nobody waits for another")
        func hitForMiss() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", answer("mine", "Cache-Control: no-store"))
            _ = try stage.get("/it")
            let gate = Gate()
            stage.origin.on(
                "/it", answer("mine", "Cache-Control: no-store").delayingHead(.gate(gate)))
            let swarm = stage.swarm("/it", Array(repeating: [], count: 20))
            #expect(gate.waitForArrivals(20))
            gate.open()
            #expect(swarm.responses().allSatisfy { $0.status == 200 && $0.bodyByteCount == 4 })
        }

        @Test("An address that was not shared and then is, is stored again")
        func sharedAgain() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", answer("mine", "Cache-Control: private"))
            _ = try stage.get("/it")
            stage.origin.on("/it", answer("ours", lasting))
            #expect(try stage.get("/it").text == "ours")
            #expect(try stage.get("/it").isHit)
            #expect(stage.fetches("/it") == 2)
        }

        @Test("Clients of two variants make two fetches")
        func variants() throws {
            let stage = try SiteStage()
            let origin = stage.origin
            origin.on("/it") { request in
                answer("of \(request.fields["Foo"] ?? "nobody")", lasting, "Vary: Foo")
            }
            #expect(try stage.get("/it", fields: ["Foo: 0"]).text == "of 0")
            let gate = Gate()
            origin.on("/it") { request in
                answer("of \(request.fields["Foo"] ?? "nobody")", lasting, "Vary: Foo")
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

        @Test("Clients of several variants of a cold address make at most one fetch for each")
        func coldVariants() throws {
            let stage = try SiteStage()
            stage.origin.on("/it") { request in
                answer("of \(request.fields["Foo"] ?? "nobody")", lasting, "Vary: Foo")
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

        @Test("One validation serves everybody")
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

        @Test("Many clients of a stale answer make one request behind them")
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
            "What stands in for one variant is not given to those who wait for another",
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
            // Nothing in memory says yet that the answers differ: they wait for the first one's.
            if isOnDisk { try stage.waitForWaiters(6) }
            gate.open()
            #expect(first.responses().allSatisfy { $0.status == 200 && $0.bodyByteCount == 9 })
            let others = second.responses()
            #expect(others.allSatisfy { $0.status == 200 && $0.bodyByteCount == 5 }, "\(others)")
        }

        @Test("Who waits for another's fetch too long goes by itself")
        func waitedTooLong() throws {
            let stage = try SiteStage("--wait-timeout", "300ms")
            let gate = Gate()
            stage.origin.on("/it", answer("late", lasting).delayingHead(.gate(gate)))
            let first = stage.swarm("/it", [[]])
            #expect(gate.waitForArrivals())
            stage.origin.on("/it", answer("soon", lasting))
            let second = stage.swarm("/it", [[]]).responses()
            #expect(second.allSatisfy { $0.status == 200 && $0.bodyByteCount == 4 })
            #expect(stage.fetches("/it") == 2)
            #expect(first.responses().allSatisfy { $0.status == 503 })
            gate.open()
        }

        @Test("A post does not wait for a get of the same address")
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
            // What was asked for before the post may be older than what the post made.
            _ = try stage.get("/it")
            #expect(stage.fetches("/it") == 3)
        }
    }
}
