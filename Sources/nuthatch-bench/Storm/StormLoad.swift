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
        var latencies = Latencies()
        /// Answers by status; 0 counts connections that ended without one.
        var statuses: [Int: Int] = [:]
        /// Requests that were not made, because as many waited as this client allows.
        var skipped = 0
    }

    private let loop: any EventLoop
    private let port: Int
    private let interval: UInt64
    private let startsAfter: UInt64
    private let connectionsMax: Int
    private let waits: Bool
    private let greeting: [UInt8]
    private let request: (Int) -> [UInt8]
    private var number = 0
    private var idle: [LoopClient] = []
    private var open = 0
    private var due: UInt64 = 0
    private var end: UInt64 = 0
    private var pending = 0
    /// When those were due that wait for a connection.
    private var waiting: [UInt64] = []
    private var seen = Seen()
    private var promise: EventLoopPromise<Seen>?

    private init(
        on loop: any EventLoop, to port: Int, interval: UInt64, startsAfter: UInt64,
        connectionsMax: Int, waits: Bool, greeting: [UInt8], request: @escaping (Int) -> [UInt8]
    ) {
        self.loop = loop
        self.port = port
        self.interval = interval
        self.startsAfter = startsAfter
        self.connectionsMax = connectionsMax
        self.waits = waits
        self.greeting = greeting
        self.request = request
    }

    /// One that is used from elsewhere, with times in nanoseconds.
    ///
    /// What is due while no connection is free is skipped, or with `waits` asked for later.
    /// `greeting` is sent before the first request of each connection; `request` is given the
    /// number of the request.
    static func bound(
        on loop: any EventLoop, to port: Int, interval: UInt64, startsAfter: UInt64 = 0,
        connectionsMax: Int, waits: Bool = false, greeting: [UInt8] = [],
        request: @escaping @Sendable (Int) -> [UInt8]
    ) async throws -> Bound {
        try await loop.submit {
            let load = StormLoad(
                on: loop, to: port, interval: interval, startsAfter: startsAfter,
                connectionsMax: connectionsMax, waits: waits, greeting: greeting, request: request)
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
        let start = nanoseconds()
        due = start + startsAfter
        end = start + UInt64(seconds * 1e9)
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
            due += interval
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
            if waits { waiting.append(due) } else { seen.skipped += 1 }
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
        number += 1
        client.ask(ByteBuffer(bytes: greeting + request(number))) { response in
            self.answered(response.looksWhole ? response.status : 0, client, due)
        }
    }

    private func answered(_ status: Int, _ client: LoopClient?, _ due: UInt64) {
        seen.latencies.add(nanoseconds() - due)
        seen.statuses[status, default: 0] += 1
        if let client, status != 0, client.isOpen { idle.append(client) } else { open -= 1 }
        pending -= 1
        if waiting.isEmpty { finishIfDone() } else { ask(due: waiting.removeFirst()) }
    }

    private func finishIfDone() {
        guard pending == 0, due >= end, let promise else { return }
        self.promise = nil
        promise.succeed(seen)
    }
}
