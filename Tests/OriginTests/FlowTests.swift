import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing

@Suite("Flow control, cancellation and timeouts")
struct FlowTests {
    static let count = 50_000_000
    static let window = 64 * 1024

    private static func flood(_ count: Int, then last: ByteOrigin.Step...) -> [ByteOrigin.Step] {
        [
            .awaitRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n"),
            .flood(count),
        ]
            + last
    }

    @Test("While a fetch is paused, a fast origin fills neither memory nor the delegate")
    func paused() async throws {
        try await Rig.run(settings: { $0.receiveWindowBytes = Self.window }) { rig in
            let origin = try await rig.origin(Self.flood(Self.count))
            let other = try await rig.origin(Self.flood(Self.count))
            let box = LockedBox<NIOLoopBound<(Recorder, OriginFetch)>?>(nil)
            let loop = rig.loop
            let outcome = try await rig.begin(origin.port) { recorder, fetch in
                box.value = NIOLoopBound((recorder, fetch), eventLoop: loop)
                recorder.keepsBody = false
                recorder.afterEach = { _ in fetch.pause() }
            }
            // In the time another fetch on the same loop reads all its body, this one could have
            // too.
            let beside = try await rig.begin(other.port) { recorder, _ in
                recorder.keepsBody = false
            }
            #expect(try await beside.get().end == .ended(delimitedByClose: false))
            let seen = try await loop.submit { box.value?.value.0.bytesSeen ?? 0 }.get()
            #expect(seen <= 64 * 1024)
            // The kernel's buffers on both sides of the connection.
            #expect(origin.bytesSent <= 16_000_000)
            try await loop.submit {
                guard let (recorder, fetch) = box.value?.value else { return }
                recorder.afterEach = { _ in }
                fetch.resume()
            }.get()
            #expect(try await outcome.get().end == .ended(delimitedByClose: false))
            let all = try await loop.submit { box.value?.value.0.bytesSeen ?? 0 }.get()
            #expect(all == Self.count)
            box.value = nil
        }
    }

    @Test("Pausing after each piece does not change the body")
    func stuttering() async throws {
        let count = 3_000_000
        try await Rig.run { rig in
            for last in [[ByteOrigin.Step](), [.close]] {
                let origin = try await rig.origin(Self.flood(count) + last)
                let loop = rig.loop
                let outcome = try await rig.begin(origin.port) { recorder, fetch in
                    let bound = NIOLoopBound(fetch, eventLoop: loop)
                    recorder.afterEach = { _ in
                        bound.value.pause()
                        loop.execute { bound.value.resume() }
                    }
                }.get()
                #expect(outcome.end == .ended(delimitedByClose: false))
                #expect(outcome.body.readableBytes == count)
                #expect(ByteOrigin.isFlood(outcome.body))
            }
        }
    }

    @Test(
        "A paused fetch keeps what the origin sent before it disconnected",
        arguments: [ByteOrigin.Step.close, .reset])
    func closedWhilePaused(how: ByteOrigin.Step) async throws {
        let count = 100_000
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [
                    .awaitRequestHead, .send("HTTP/1.1 200 OK\r\n\r\n"), .flood(count), .awaitGate,
                    how,
                ])
            let box = LockedBox<NIOLoopBound<(Recorder, OriginFetch)>?>(nil)
            let loop = rig.loop
            let outcome = try await rig.begin(origin.port) { recorder, fetch in
                box.value = NIOLoopBound((recorder, fetch), eventLoop: loop)
                recorder.afterEach = { _ in
                    fetch.pause()
                    origin.openGate()
                }
            }
            // The client no longer counts the connection, but the fetch continues.
            try await rig.until { $0.connections == 0 }
            #expect(try await rig.usage().fetches == 1)
            let seen = try await loop.submit { box.value?.value.0.bytesSeen ?? 0 }.get()
            #expect(seen < count)
            try await loop.submit {
                guard let (recorder, fetch) = box.value?.value else { return }
                recorder.afterEach = { _ in }
                fetch.resume()
            }.get()
            let result = try await outcome.get()
            if case .close = how {
                #expect(result.body.readableBytes == count)
                #expect(result.end == .ended(delimitedByClose: true))
            } else {
                #expect(result.end == .failed(.reset(received: UInt64(result.body.readableBytes))))
            }
            box.value = nil
        }
    }

    /// A phase of a fetch, with the origin's steps until then.
    enum Moment: CaseIterable, Sendable {
        case atOnce, resolving, connecting, awaitingHead, afterHead, inBody, paused, afterEnd
    }

    @Test(
        "Cancelling in any phase leaves nothing behind", arguments: Moment.allCases
    )
    func cancelled(at moment: Moment) async throws {
        try await Rig.run(names: ["slow.example": []]) { rig in
            var script = Self.flood(1_000_000)
            if moment == .awaitingHead { script = [.awaitRequestHead, .awaitGate] }
            let origin = try await rig.origin(script)
            let host = moment == .resolving ? "slow.example" : "127.0.0.1"
            let loop = rig.loop
            let box = LockedBox<NIOLoopBound<(Recorder, OriginFetch)>?>(nil)
            let outcome = try await rig.begin(origin.port, host: host) { recorder, fetch in
                box.value = NIOLoopBound((recorder, fetch), eventLoop: loop)
                switch moment {
                case .atOnce: fetch.cancel()
                case .connecting: loop.assumeIsolated().execute { fetch.cancel() }
                case .afterHead: recorder.afterEach = { _ in fetch.cancel() }
                case .inBody:
                    recorder.afterEach = { if $0.seen.pieces == 2 { fetch.cancel() } }
                case .paused: recorder.afterEach = { _ in fetch.pause() }
                case .resolving, .awaitingHead, .afterEnd: break
                }
            }
            switch moment {
            case .resolving: try await rig.until { $0.lookups == 1 }
            case .awaitingHead: while origin.requests.isEmpty { await Task.yield() }
            case .afterEnd: _ = try await outcome.get()
            default: break
            }
            if moment == .paused {
                while origin.requests.isEmpty { await Task.yield() }
            }
            if [.resolving, .awaitingHead, .paused, .afterEnd].contains(moment) {
                try await loop.submit { box.value?.value.1.cancel() }.get()
            }
            rig.resolver.answerTheRest()
            let idle = moment == .afterEnd ? 1 : 0
            try await rig.until { $0.fetches == 0 && $0.connections == idle }
            try await loop.submit {
                guard let (recorder, fetch) = box.value?.value else { return }
                fetch.resume()
                fetch.pause()
                fetch.cancel()
                #expect((recorder.seen.end == nil) == (moment != .afterEnd))
                #expect(recorder.seen.lateCalls == 0)
                recorder.giveUp()
            }.get()
            box.value = nil
        }
    }

    @Test("A cancelled or ended fetch releases its delegate")
    func letGo() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(Self.flood(100))
            let loop = rig.loop
            let request = try Rig.request("http://127.0.0.1:\(origin.port)/")
            let isGone = try await rig.with { client in
                weak var recorder: Recorder?
                let fetch: OriginFetch
                do {
                    let held = Recorder(on: loop)
                    held.giveUp()
                    recorder = held
                    fetch = client.fetch(request, to: held)
                }
                let wasHeld = recorder != nil
                fetch.cancel()
                return wasHeld && recorder == nil
            }
            #expect(isGone)
        }
    }

    @Test("A silent origin is given up after the limit on the head")
    func headLimit() async throws {
        try await Rig.run(settings: { $0.headLimit = .milliseconds(20) }) { rig in
            let origin = try await rig.origin([
                .awaitRequestHead, .send("HTTP/1.1 200"), .awaitGate,
            ])
            let outcome = try await rig.get(origin.port)
            #expect(
                outcome.failure == .timedOut(.awaitingHead, limit: .milliseconds(20)))
            #expect(outcome.failure?.status == 504)
        }
    }

    @Test("An origin that stalls in the body is given up after the idle limit")
    func idleLimit() async throws {
        try await Rig.run(settings: { $0.idleLimit = .milliseconds(20) }) { rig in
            let origin = try await rig.origin(
                [
                    .awaitRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi"),
                    .awaitGate,
                ])
            let outcome = try await rig.get(origin.port)
            #expect(outcome.text == "hi")
            #expect(outcome.failure == .timedOut(.readingBody, limit: .milliseconds(20)))
        }
    }

    @Test("A paused fetch is subject to the total limit and not to the idle limit")
    func totalLimit() async throws {
        try await Rig.run(settings: {
            // Long enough for the first bytes on a loaded machine.
            $0.idleLimit = .milliseconds(50)
            $0.totalLimit = .milliseconds(300)
        }) { rig in
            let origin = try await rig.origin(Self.flood(1000))
            let outcome = try await rig.begin(origin.port) { recorder, fetch in
                recorder.afterEach = { _ in fetch.pause() }
            }.get()
            #expect(outcome.failure == .timedOut(.total, limit: .milliseconds(300)))
        }
    }

    @Test("A look-up that does not end is given up after the connect limit")
    func connectLimit() async throws {
        try await Rig.run(
            names: ["slow.example": []], settings: { $0.connectLimit = .milliseconds(20) }
        ) { rig in
            let outcome = try await rig.get(80, host: "slow.example")
            #expect(outcome.failure == .timedOut(.resolving, limit: .milliseconds(20)))
        }
    }
}
