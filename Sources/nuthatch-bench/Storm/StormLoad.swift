import Harness
import NIOCore
import NIOPosix

/// Requests at a steady rate from one loop, however long their answers take.
///
/// A time is counted from the instant at which its request was due, so that a node which stands
/// still is not spared the requests of that time.
final class StormLoad {
    /// What was seen in one slice.
    struct Seen: Sendable {
        var latencies: [UInt64] = []
        /// Answers by status; 0 counts connections that ended without one.
        var statuses: [Int: Int] = [:]
        /// Requests that were not made, because as many waited as this client allows.
        var skipped = 0
    }

    private let loop: any EventLoop
    private let port: Int
    private let perSecond: Int
    private let connectionsMax: Int
    private let greeting: [UInt8]
    private let request: () -> [UInt8]
    private var idle: [LoopClient] = []
    private var open = 0
    private var due: UInt64 = 0
    private var end: UInt64 = 0
    private var pending = 0
    private var seen = Seen()
    private var promise: EventLoopPromise<Seen>?

    /// `greeting` is sent before the first request of each connection; `request` gives the bytes of
    /// the next one.
    init(
        on loop: any EventLoop, to port: Int, perSecond: Int, connectionsMax: Int,
        greeting: [UInt8] = [], request: @escaping () -> [UInt8]
    ) {
        self.loop = loop
        self.port = port
        self.perSecond = perSecond
        self.connectionsMax = connectionsMax
        self.greeting = greeting
        self.request = request
    }

    /// One that is used from elsewhere; `request` is given the number of the request.
    static func bound(
        on loop: any EventLoop, to port: Int, perSecond: Int, connectionsMax: Int,
        greeting: [UInt8] = [], request: @escaping @Sendable (Int) -> [UInt8]
    ) async throws -> Bound {
        try await loop.submit {
            var number = 0
            let load = StormLoad(
                on: loop, to: port, perSecond: perSecond, connectionsMax: connectionsMax,
                greeting: greeting
            ) {
                number += 1
                return request(number)
            }
            return Bound(load: NIOLoopBound(load, eventLoop: loop), loop: loop)
        }.get()
    }

    /// A load and the loop on which it is used.
    struct Bound: Sendable {
        fileprivate let load: NIOLoopBound<StormLoad>
        fileprivate let loop: any EventLoop

        func run(_ seconds: Double) -> EventLoopFuture<Seen> {
            loop.flatSubmit { load.value.run(seconds: seconds) }
        }

        func close() async throws {
            try await loop.submit { load.value.close() }.get()
        }
    }

    /// Makes requests for so long, and waits for their answers.
    func run(seconds: Double) -> EventLoopFuture<Seen> {
        let promise = loop.makePromise(of: Seen.self)
        self.promise = promise
        seen = Seen()
        due = nanoseconds()
        end = due + UInt64(seconds * 1e9)
        step()
        return promise.futureResult
    }

    func close() {
        for client in idle { client.close() }
        idle = []
    }

    private func step() {
        let now = nanoseconds()
        while due <= now, due < end {
            ask(due: due)
            due += 1_000_000_000 / UInt64(perSecond)
        }
        guard due < end else { return finishIfDone() }
        loop.assumeIsolated().scheduleTask(in: .microseconds(200)) { self.step() }
    }

    private func ask(due: UInt64) {
        pending += 1
        while let client = idle.popLast() {
            if client.isOpen { return ask(client, due) }
            open -= 1
        }
        guard open < connectionsMax else {
            pending -= 1
            seen.skipped += 1
            return
        }
        open += 1
        LoopClient.connect(to: port, on: loop).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let client): self.ask(client, due, greeting: self.greeting)
            case .failure: self.answered(0, nil, due)
            }
        }
    }

    private func ask(_ client: LoopClient, _ due: UInt64, greeting: [UInt8] = []) {
        client.ask(ByteBuffer(bytes: greeting + request())) { response in
            self.answered(response.looksWhole ? response.status : 0, client, due)
        }
    }

    private func answered(_ status: Int, _ client: LoopClient?, _ due: UInt64) {
        seen.latencies.append(nanoseconds() - due)
        seen.statuses[status, default: 0] += 1
        if let client, status != 0, client.isOpen { idle.append(client) } else { open -= 1 }
        pending -= 1
        finishIfDone()
    }

    private func finishIfDone() {
        guard pending == 0, due >= end, let promise else { return }
        self.promise = nil
        promise.succeed(seen)
    }
}
