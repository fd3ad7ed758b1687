import Glibc
import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing

@Suite("Limits and names shared by the event loops of a node")
struct SharingTests {
    static let late: [ByteOrigin.Step] = [.awaitRequestHead, .awaitGate] + hi.dropFirst()

    @Test("The limit on connections to an origin holds across loops, and all fetches are served")
    func connectionsMax() async throws {
        try await Rig.run(settings: { $0.admission.connectionsMax = 3 }) { rig in
            let busy = Array(repeating: hi, count: 40).flatMap { $0 }
            let origin = try await rig.origin(Self.late + busy)
            var outcomes: [EventLoopFuture<Outcome>] = []
            for _ in 1...20 {
                outcomes.append(try await rig.begin(origin.port))
                outcomes.append(try await rig.beginBeside(origin.port))
            }
            while origin.connections < 3 || rig.exchange.statistics.waiting < 37 {
                await Task.yield()
            }
            #expect(rig.exchange.statistics.connections == 3 && origin.connections == 3)
            origin.openGate()
            for outcome in outcomes { #expect(try await outcome.get().text == "hi") }
            #expect(rig.exchange.statistics.connections <= 3)
        }
    }

    @Test("A loop gets the slot of an idle connection of the other")
    func idleElsewhere() async throws {
        try await Rig.run(settings: { $0.admission.connectionsMax = 1 }) { rig in
            let origin = try await rig.origin(hi + hi)
            for _ in 1...3 {
                #expect(try await rig.get(origin.port).text == "hi")
                #expect(try await rig.beginBeside(origin.port).get().text == "hi")
            }
            // The origin sees a close a moment later than the admission.
            while origin.openConnections > 1 { await Task.yield() }
            #expect(rig.exchange.statistics.connections == 1)
        }
    }

    @Test("A fetch cancelled as it gets a slot returns the slot")
    func grantedTooLate() async throws {
        try await Rig.run(settings: { $0.admission.connectionsMax = 1 }) { rig in
            // On a loop of its own, since the other two are kept busy.
            let origin = try await ByteOrigin.listening(
                on: MultiThreadedEventLoopGroup.singleton, [.awaitRequestHead, .awaitGate, .close],
                hi)
            let first = try await rig.begin(origin.port)
            let (client, exchange) = (rig.beside, rig.exchange)
            let request = try Rig.request("http://127.0.0.1:\(origin.port)/")
            let loop = rig.besideLoop
            let cancelled = loop.makePromise(of: Void.self)
            try await loop.submit {
                let recorder = Recorder(on: loop)
                let fetch = client.value.fetch(request, to: recorder)
                loop.assumeIsolated().execute {
                    #expect(exchange.statistics.waiting == 1)
                    origin.openGate()
                    // While this loop is blocked, the other one's connection ends.
                    while exchange.statistics.waiting > 0 { sched_yield() }
                    fetch.cancel()
                    recorder.giveUp()
                    cancelled.succeed()
                }
            }.get()
            try await cancelled.futureResult.get()
            #expect(try await first.get().failure != nil)
            let next = try await rig.get(origin.port)
            #expect(next.text == "hi", "\(next)")
            try await origin.stop()
        }
    }

    @Test("Beyond the queue a fetch is refused at once")
    func queue() async throws {
        try await Rig.run(
            settings: {
                $0.admission.connectionsMax = 1
                $0.admission.queueMax = 1
                $0.queueLimit = .seconds(3600)
            }
        ) { rig in
            let origin = try await rig.origin(Self.late + [.close], hi)
            let first = try await rig.begin(origin.port)
            let waiting = try await rig.beginBeside(origin.port)
            let refused = try await rig.get(origin.port)
            #expect(refused.failure == .overloaded(.queue))
            #expect(refused.failure?.status == 503 && refused.failure?.retryAfter != nil)
            origin.openGate()
            #expect(try await first.get().text == "hi")
            #expect(try await waiting.get().text == "hi")
        }
    }

    @Test("A fetch in the queue is refused after the queue time")
    func queueTime() async throws {
        try await Rig.run(
            settings: {
                $0.admission.connectionsMax = 1
                $0.admission.queueMax = 1
                $0.queueLimit = .milliseconds(100)
            }
        ) { rig in
            let origin = try await rig.origin(Self.late)
            let first = try await rig.begin(origin.port)
            let waiting = try await rig.beginBeside(origin.port)
            #expect(try await waiting.get().failure == .overloaded(.queueTime))
            origin.openGate()
            #expect(try await first.get().text == "hi")
        }
    }

    @Test("A failing origin's circuit opens for all loops, then a few trials run")
    func circuit() async throws {
        try await Rig.run(
            settings: {
                $0.admission.circuit = CircuitLimits(failures: 3, openInterval: .seconds(3600))
            }
        ) { rig in
            let origin = try await rig.origin(
                [.awaitRequestHead, .reset], [.awaitRequestHead, .reset],
                [.awaitRequestHead, .reset],
                Self.late)
            for number in 1...3 {
                let outcome = try await rig.get(origin.port, path: "/\(number).png")
                #expect(outcome.failure != nil)
            }
            let refused = try await rig.beginBeside(origin.port).get()
            guard case .circuitOpen(_, let pause)? = refused.failure else {
                Issue.record("used again: \(String(describing: refused.end))")
                return
            }
            #expect(pause <= .seconds(3600))
            #expect(origin.connections == 3)
            rig.lead.value = .seconds(3601)
            var trials: [EventLoopFuture<Outcome>] = []
            for _ in 1...3 { trials.append(try await rig.begin(origin.port)) }
            while origin.connections < 6 { await Task.yield() }
            guard case .circuitOpen? = try await rig.beginBeside(origin.port).get().failure else {
                Issue.record("a fetch ran beside the trials")
                return
            }
            origin.openGate()
            for trial in trials { #expect(try await trial.get().text == "hi") }
            #expect(
                rig.events.value.map { event in
                    if case .circuitChanged(_, .opened(let failures, _)) = event {
                        failures
                    } else {
                        0
                    }
                } == [3, 0])
        }
    }

    /// The outcome of a fetch, if it has ended after one round of the loop.
    private func firstOf(_ outcome: EventLoopFuture<Outcome>, _ rig: Rig) async throws -> Outcome {
        let box = LockedBox<Outcome?>(nil)
        outcome.whenSuccess { box.value = $0 }
        _ = try await rig.usage()
        return box.value ?? Outcome()
    }

    @Test("A name is looked up once for all loops, and again after its lifetime")
    func names() async throws {
        let names = ["a.example": [["127.0.0.1"]]]
        try await Rig.run(names: names) { rig in
            let origin = try await rig.origin(hi)
            #expect(try await rig.get(origin.port, host: "a.example").text == "hi")
            #expect(try await rig.beginBeside(origin.port, host: "a.example").get().text == "hi")
            #expect(rig.resolver.asked("a.example") == 1)
            #expect(rig.exchange.statistics.cachedNames == 1)
            #expect(try await rig.get(80, host: "none.example").failure != nil)
            #expect(try await rig.get(80, host: "none.example").failure != nil)
            #expect(rig.resolver.asked("none.example") == 1)
        }
    }

    @Test("Addresses that refuse a connection are looked up before another use")
    func distrusted() async throws {
        let names = ["a.example": [["127.0.0.3"], ["127.0.0.1"]]]
        try await Rig.run(names: names) { rig in
            let origin = try await rig.origin(hi)
            let first = try await rig.get(origin.port, host: "a.example")
            guard case .connectFailed? = first.failure else {
                Issue.record("\(String(describing: first.end))")
                return
            }
            #expect(try await rig.get(origin.port, host: "a.example").text == "hi")
        }
    }

    @Test("An unresponsive address costs the racing delay, not the timeout")
    func happyEyeballs() async throws {
        // A listener with a full backlog accepts no connection: the kernel drops packets to it.
        let names = ["a.example": [["127.0.0.9", "127.0.0.1"]]]
        try await Rig.run(names: names, settings: { $0.connectLimit = .seconds(3600) }) { rig in
            let origin = try await rig.origin(hi)
            let silent = try FullBacklogListener(address: "127.0.0.9", port: Int(origin.port))
            #expect(try await rig.get(origin.port, host: "a.example").text == "hi")
            #expect(try await rig.usage().connectionsStarted == 2)
            silent.close()
        }
    }
}
