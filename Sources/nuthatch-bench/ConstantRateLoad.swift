import Harness
import NIOCore
import NIOPosix

/// Generator of requests at a constant rate from one loop, whatever their response times are.
///
/// A response time is measured from the instant at which its request was due. So a node that stalls
/// is charged for the requests of that time.
final class ConstantRateLoad {
    /// The measurements of one slice.
    struct Measurement: Sendable {
        var latencies = Latencies()
        /// The responses by status; 0 counts connections that ended without one.
        var statuses: [Int: Int] = [:]
        /// The requests that were skipped at the client's limit of outstanding ones.
        var skipped = 0
    }

    private let loop: any EventLoop
    private let port: Int
    private let interval: UInt64
    private let startsAfter: UInt64
    private let connectionsMax: Int
    private let queuesWhenBusy: Bool
    private let preamble: [UInt8]
    private let request: (Int) -> [UInt8]
    private var number = 0
    private var idle: [EventLoopClient] = []
    private var open = 0
    private var nextDue: UInt64 = 0
    private var end: UInt64 = 0
    private var pending = 0
    /// The due times of requests that wait for a connection.
    private var waiting: [UInt64] = []
    private var measurement = Measurement()
    private var promise: EventLoopPromise<Measurement>?

    private init(
        on loop: any EventLoop, to port: Int, interval: UInt64, startsAfter: UInt64,
        connectionsMax: Int, queuesWhenBusy: Bool, preamble: [UInt8],
        request: @escaping (Int) -> [UInt8]
    ) {
        self.loop = loop
        self.port = port
        self.interval = interval
        self.startsAfter = startsAfter
        self.connectionsMax = connectionsMax
        self.queuesWhenBusy = queuesWhenBusy
        self.preamble = preamble
        self.request = request
    }

    /// Creates a load for use from other threads, with times in nanoseconds.
    ///
    /// A request that is due while no connection is free is skipped, or sent later with
    /// `queuesWhenBusy`. `preamble` is sent before the first request of each connection; `request`
    /// receives the number of the request.
    static func make(
        on loop: any EventLoop, to port: Int, interval: UInt64, startsAfter: UInt64 = 0,
        connectionsMax: Int, queuesWhenBusy: Bool = false, preamble: [UInt8] = [],
        request: @escaping @Sendable (Int) -> [UInt8]
    ) async throws -> Handle {
        try await loop.submit {
            let load = ConstantRateLoad(
                on: loop, to: port, interval: interval, startsAfter: startsAfter,
                connectionsMax: connectionsMax, queuesWhenBusy: queuesWhenBusy,
                preamble: preamble, request: request)
            return Handle(load: NIOLoopBound(load, eventLoop: loop), loop: loop)
        }.get()
    }

    /// A load and the loop on which it is used.
    struct Handle: Sendable {
        fileprivate let load: NIOLoopBound<ConstantRateLoad>
        fileprivate let loop: any EventLoop

        func run(_ seconds: Double) -> EventLoopFuture<Measurement> {
            loop.flatSubmit { load.value.run(seconds: seconds) }
        }

        func close() async throws {
            try await loop.submit { load.value.close() }.get()
        }
    }

    /// Sends requests for `seconds`, and waits for their responses.
    func run(seconds: Double) -> EventLoopFuture<Measurement> {
        let promise = loop.makePromise(of: Measurement.self)
        self.promise = promise
        measurement = Measurement()
        let start = nanoseconds()
        nextDue = start + startsAfter
        end = start + UInt64(seconds * 1e9)
        tick()
        return promise.futureResult
    }

    func close() {
        for client in idle { client.close() }
        idle = []
    }

    private func tick() {
        let now = nanoseconds()
        while nextDue <= now, nextDue < end {
            send(due: nextDue)
            nextDue += interval
        }
        guard nextDue < end else { return finishIfDone() }
        loop.assumeIsolated().scheduleTask(in: .microseconds(200)) { self.tick() }
    }

    private func send(due: UInt64) {
        pending += 1
        while let client = idle.popLast() {
            if client.isOpen { return send(client, due) }
            open -= 1
        }
        guard open < connectionsMax else {
            pending -= 1
            if queuesWhenBusy { waiting.append(due) } else { measurement.skipped += 1 }
            return
        }
        open += 1
        EventLoopClient.connect(to: port, on: loop).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let client): self.send(client, due, preamble: self.preamble)
            case .failure: self.responseReceived(0, nil, due)
            }
        }
    }

    private func send(_ client: EventLoopClient, _ due: UInt64, preamble: [UInt8] = []) {
        number += 1
        client.send(ByteBuffer(bytes: preamble + request(number))) { response in
            self.responseReceived(response.isWhole ? response.status : 0, client, due)
        }
    }

    private func responseReceived(_ status: Int, _ client: EventLoopClient?, _ due: UInt64) {
        measurement.latencies.add(nanoseconds() - due)
        measurement.statuses[status, default: 0] += 1
        if let client, status != 0, client.isOpen { idle.append(client) } else { open -= 1 }
        pending -= 1
        if waiting.isEmpty { finishIfDone() } else { send(due: waiting.removeFirst()) }
    }

    private func finishIfDone() {
        guard pending == 0, nextDue >= end, let promise else { return }
        self.promise = nil
        promise.succeed(measurement)
    }
}

/// The statistics of the slices of one kind.
struct SliceStatistics {
    private let sorted: [UInt64]
    private let slices: [[UInt64]]
    let statuses: [Int: Int]
    private let skipped: Int

    init(_ slices: [ConstantRateLoad.Measurement]) {
        self.slices = slices.map(\.latencies.sorted)
        sorted = self.slices.joined().sorted()
        statuses = slices.reduce(into: [:]) { $0.merge($1.statuses, uniquingKeysWith: +) }
        skipped = slices.reduce(0) { $0 + $1.skipped }
    }

    /// Returns a quantile of the response times in nanoseconds.
    func quantile(_ part: Double) -> UInt64 {
        Latencies.quantile(at: part, of: sorted)
    }

    /// Returns the quantile of each slice.
    func quantiles(_ part: Double) -> [UInt64] {
        slices.map { Latencies.quantile(at: part, of: $0) }
    }

    /// Returns the quantile relative to `other`: the median over the rounds, whose slices follow
    /// each other within seconds.
    func ratio(to other: SliceStatistics, _ part: Double) -> Double {
        let ratios = zip(quantiles(part), other.quantiles(part)).map { one, other in
            Double(one) / Double(max(1, other))
        }
        return hundredths(ratios.median)
    }

    var text: String {
        let responses = statuses.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        let times = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)].map { name, part in
            "\(name) \(quantile(part) / 1000) µs"
        }
        let left = skipped > 0 ? ", not asked: \(skipped)" : ""
        return "\(sorted.count) answers (\(responses.joined(separator: ", "))\(left)), "
            + times.joined(separator: ", ")
    }
}

/// The measurements of all slices, by kind.
struct StormSlices {
    var quiet: [ConstantRateLoad.Measurement] = []
    /// The hits while as many requests as in a storm went to another server.
    var control: [ConstantRateLoad.Measurement] = []
    var underLoad: [ConstantRateLoad.Measurement] = []
    var misses: [ConstantRateLoad.Measurement] = []

    func report() {
        let (quiet, aside) = (SliceStatistics(quiet), SliceStatistics(control))
        let stormy = SliceStatistics(underLoad)
        print("hits, quiet:               \(quiet.text)")
        print("hits, same load elsewhere: \(aside.text)")
        print("hits, with misses:         \(stormy.text)")
        print("misses:                    \(SliceStatistics(misses).text)")
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            print(
                "\(name) of hits with misses: \(stormy.ratio(to: quiet, part)) of quiet, "
                    + "\(stormy.ratio(to: aside, part)) of the same load elsewhere")
        }
    }
}
