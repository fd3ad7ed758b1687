import Glibc
import Ground
import HTTPRules
import Harness
import NIOCore
import NIOPosix
import Origin
import Synchronization
import Testing
import Wire

/// The outcome of a fetch as its delegate saw it.
struct Outcome: Sendable {
    enum End: Hashable, Sendable {
        case ended(delimitedByClose: Bool)
        case failed(OriginFailure)
    }

    /// The targets of the redirects.
    var redirects: [String] = []
    /// The heads of the interim responses.
    var interims: [String] = []
    var trailers = ""
    var status: UInt16?
    var head = ""
    var bodyLength: UInt64?
    var body = ByteBuffer()
    var pieces = 0
    /// The greatest ratio of memory held by a piece to its size.
    var wasteMax = 0.0
    var end: End?
    /// The number of callbacks after the final one.
    var lateCalls = 0
    var requestedAt: Instant?
    var answeredAt: Instant?
    var failure: OriginFailure? {
        if case .failed(let failure)? = end { failure } else { nil }
    }
    var text: String { String(buffer: body) }
}

/// A delegate that records a fetch; for the client's loop only, except `outcome`.
final class Recorder: OriginFetchDelegate {
    private(set) var seen = Outcome()
    private let promise: EventLoopPromise<Outcome>
    /// Called after the head and after each piece of the body.
    var afterEach: (Recorder) -> Void = { _ in }
    /// Called when the origin accepts more of the request's body.
    var whenMoreIsTaken: (Recorder) -> Void = { _ in }
    var keepsBody = true
    private(set) var bytesSeen = 0

    init(on loop: any EventLoop) {
        promise = loop.makePromise()
    }

    var outcome: EventLoopFuture<Outcome> { promise.futureResult }

    /// Ends the recording of a fetch that will not end by itself.
    func giveUp() {
        promise.succeed(seen)
    }

    func redirectReceived(
        _ head: ResponseHead, to url: [UInt8], requestedAt: Instant, respondedAt: Instant
    ) {
        noteCall()
        #expect(seen.status == nil, "a redirect after the final head")
        seen.redirects.append(String(decoding: url, as: UTF8.self))
        afterEach(self)
    }

    func originResponseReceived(
        _ head: ResponseHead, bodyLength: UInt64?, requestedAt: Instant, respondedAt: Instant
    ) {
        noteCall()
        #expect(seen.status == nil, "two heads")
        seen.status = head.status
        seen.head = String(decoding: head.bytes, as: UTF8.self)
        seen.bodyLength = bodyLength
        seen.requestedAt = requestedAt
        seen.answeredAt = respondedAt
        afterEach(self)
    }

    func originInterimResponseReceived(_ head: ResponseHead) {
        noteCall()
        #expect(seen.status == nil, "an interim response after the final head")
        seen.interims.append(String(decoding: head.bytes, as: UTF8.self))
        afterEach(self)
    }

    func originTrailersReceived(_ trailers: Trailers) {
        noteCall()
        seen.trailers += String(decoding: trailers.bytes, as: UTF8.self)
    }

    func originBecameWritable() {
        noteCall()
        whenMoreIsTaken(self)
    }

    func originBodyReceived(_ body: ByteBuffer) {
        noteCall()
        #expect(body.readableBytes > 0)
        seen.pieces += 1
        seen.wasteMax = max(
            seen.wasteMax, Double(body.storageCapacity) / Double(body.readableBytes))
        bytesSeen += body.readableBytes
        if keepsBody { seen.body.writeImmutableBuffer(body) }
        afterEach(self)
    }

    func originResponseEnded(delimitedByClose: Bool) {
        finish(.ended(delimitedByClose: delimitedByClose))
    }

    func originFetchFailed(_ failure: OriginFailure) {
        finish(.failed(failure))
    }

    private func finish(_ end: Outcome.End) {
        noteCall()
        guard seen.end == nil else { return }
        seen.end = end
        promise.succeed(seen)
    }

    private func noteCall() {
        if seen.end != nil { seen.lateCalls += 1 }
    }
}

/// A resolver with a list of results for each name.
final class ScriptedResolver: NameResolver {
    private struct State {
        var answers: [String: [[String]]]
        var asked: [String: Int] = [:]
        var unanswered: [EventLoopPromise<[IPAddress]>] = []
    }

    private let state: Mutex<State>

    /// Repeats the last result; a name without results does not exist, one with an empty list is
    /// never resolved.
    init(_ responses: [String: [[String]]] = [:]) {
        state = Mutex(State(answers: responses))
    }

    func asked(_ host: String) -> Int {
        state.withLock { $0.asked[host] ?? 0 }
    }

    func answerTheRest() {
        let rest = state.withLock { state in
            defer { state.unanswered = [] }
            return state.unanswered
        }
        for promise in rest { promise.fail(ResolveFailure.failed("given up")) }
    }

    func addresses(of host: String, on loop: any EventLoop) -> EventLoopFuture<[IPAddress]> {
        let promise = loop.makePromise(of: [IPAddress].self)
        state.withLock { state in
            let count = state.asked[host, default: 0]
            state.asked[host] = count + 1
            guard let responses = state.answers[host] else {
                return promise.fail(ResolveFailure.nameNotFound)
            }
            guard !responses.isEmpty else { return state.unanswered.append(promise) }
            let texts = responses[min(count, responses.count - 1)]
            promise.succeed(texts.compactMap { IPAddress($0) })
        }
        return promise.futureResult
    }
}

/// A client on an event loop of its own, for one test.
struct Rig: Sendable {
    let group: MultiThreadedEventLoopGroup
    let loop: any EventLoop
    let resolver: ScriptedResolver
    private let bound: NIOLoopBound<OriginClient>
    /// A client on another loop with the same exchange.
    let beside: NIOLoopBound<OriginClient>
    let besideLoop: any EventLoop
    let exchange: OriginCoordinator
    let events: LockedBox<[OriginEvent]>
    /// The lead of the clients' clock over the machine's.
    let lead: LockedBox<Interval>
    private let origins = LockedBox<[ByteOrigin]>([])

    /// Runs `body` with a client that may fetch from `opening`, then checks that nothing is left
    /// behind.
    static func run<Result: Sendable>(
        opening: [String] = ["127.0.0.0/8", "::1"], patterns: [String] = ["*"],
        names: [String: [[String]]] = [:],
        settings change: @Sendable (inout OriginSettings) -> Void = { _ in },
        _ body: (Rig) async throws -> Result
    ) async throws -> Result {
        var settings = OriginSettings()
        change(&settings)
        let chosen = settings
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let loop = group.next()
        let resolver = ScriptedResolver(names)
        let addressGuard = AddressGuard(allowing: try opening.map { try Network(parsing: $0) })
        let allowed = patterns.compactMap { OriginPattern($0) }
        let events = LockedBox<[OriginEvent]>([])
        let lead = LockedBox(Interval.zero)
        let exchange = OriginCoordinator(chosen) { event in events.change { $0.append(event) } }
        let besideLoop = group.next()
        @Sendable func client(
            on loop: any EventLoop
        ) async throws -> NIOLoopBound<OriginClient> {
            try await loop.submit {
                NIOLoopBound(
                    OriginClient(
                        loop: loop, resolver: resolver, addressGuard: addressGuard,
                        patterns: allowed, coordinator: exchange, settings: chosen,
                        now: { bootClock() + lead.value }),
                    eventLoop: loop)
            }.get()
        }
        let rig = Rig(
            group: group, loop: loop, resolver: resolver, bound: try await client(on: loop),
            beside: try await client(on: besideLoop), besideLoop: besideLoop,
            exchange: exchange, events: events, lead: lead)
        do {
            let result = try await body(rig)
            try await rig.close()
            return result
        } catch {
            try await rig.close()
            throw error
        }
    }

    /// An origin that follows scripts until the test ends.
    func origin(
        address: String = "127.0.0.1", port: Int = 0,
        behind prepare: @escaping @Sendable (any Channel) throws -> Void = { _ in },
        _ scripts: [ByteOrigin.Step]...
    ) async throws -> ByteOrigin {
        let origin = try await ByteOrigin.listening(
            on: group, address: address, port: port, behind: prepare, scripts: scripts)
        origins.change { $0.append(origin) }
        return origin
    }

    private func close() async throws {
        for origin in origins.value { try await origin.stop() }
        try await with { $0.shutDown() }
        resolver.answerTheRest()
        try await until { $0.connections == 0 && $0.lookups == 0 }
        let usage = try await usage()
        #expect(usage.fetches == 0 && usage.idle == 0)
        let beside = self.beside
        try await besideLoop.submit { beside.value.shutDown() }.get()
        let deadline = Deadline.seconds(60)
        while exchange.statistics.connections > 0, !deadline.hasPassed { await Task.yield() }
        #expect(exchange.statistics.connections == 0)
        #expect(exchange.statistics.waiting == 0)
        try await group.shutdownGracefully()
    }

    func with<Result: Sendable>(
        _ body: @escaping @Sendable (OriginClient) throws -> Result
    ) async throws -> Result {
        try await loop.submit { try body(bound.value) }.get()
    }

    func usage() async throws -> OriginUsage {
        try await with { $0.usage }
    }

    /// Waits until the client's usage satisfies a condition.
    func until(_ isSo: @Sendable (OriginUsage) -> Bool) async throws {
        let deadline = Deadline.seconds(60)
        while !isSo(try await usage()), !deadline.hasPassed { await Task.yield() }
        let usage = try await usage()
        try #require(isSo(usage), "\(usage)")
    }

    /// Starts a fetch; `prepare` runs on the loop and may set up the recorder and keep the fetch.
    func begin(
        _ port: UInt16, host: String = "127.0.0.1", path: String = "/image.png",
        _ prepare: @escaping @Sendable (Recorder, OriginFetch) -> Void = { _, _ in }
    ) async throws -> EventLoopFuture<Outcome> {
        try await begin(Self.request("http://\(host):\(port)\(path)"), prepare)
    }

    /// A request for this URL without extra fields.
    static func request(_ url: String) throws -> OriginFetchRequest {
        var key: [UInt8] = []
        let made = CacheKey.normalise(
            url: Array(url.utf8).span, at: 0..<url.utf8.count, into: &key)
        try #require(made == .normalised)
        return try #require(OriginFetchRequest(key: key, fields: []))
    }

    /// Starts a fetch for any request.
    func begin(
        _ request: OriginFetchRequest,
        _ prepare: @escaping @Sendable (Recorder, OriginFetch) -> Void = { _, _ in }
    ) async throws -> EventLoopFuture<Outcome> {
        let boundLoop = loop
        let future = try await with { client in
            let recorder = Recorder(on: boundLoop)
            let fetch = client.fetch(request, to: recorder)
            prepare(recorder, fetch)
            return NIOLoopBound(recorder.outcome, eventLoop: boundLoop)
        }
        return try await loop.submit { future.value }.get()
    }

    /// The same as ``begin(_:host:path:_:)`` on the other loop.
    func beginBeside(
        _ port: UInt16, host: String = "127.0.0.1", path: String = "/image.png"
    ) async throws -> EventLoopFuture<Outcome> {
        let request = try Self.request("http://\(host):\(port)\(path)")
        let (client, loop) = (beside, besideLoop)
        let future = try await loop.submit {
            let recorder = Recorder(on: loop)
            _ = client.value.fetch(request, to: recorder)
            return NIOLoopBound(recorder.outcome, eventLoop: loop)
        }.get()
        return try await loop.submit { future.value }.get()
    }

    /// Starts a fetch on the client's loop.
    func fetch(_ request: OriginFetchRequest, _ recorder: Recorder) -> EventLoopFuture<Outcome> {
        _ = bound.value.fetch(request, to: recorder)
        return recorder.outcome
    }

    /// Runs a fetch to its end.
    func get(
        _ port: UInt16, host: String = "127.0.0.1", path: String = "/image.png"
    ) async throws -> Outcome {
        try await begin(port, host: host, path: path).get()
    }
}

/// The usual script of an origin: it answers one request with two bytes.
let hi: [ByteOrigin.Step] = [
    .awaitRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
]

/// The boot clock, read as by the node.
func bootClock() -> Instant {
    var time = timespec()
    unsafe clock_gettime(CLOCK_BOOTTIME, &time)
    return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
}

extension OriginSettings {
    /// Creates limits that no test reaches by chance.
    init() {
        self.init(
            connectLimit: .seconds(10), headLimit: .seconds(30), idleLimit: .seconds(30),
            bodyRateMin: 0, totalLimit: .seconds(600), queueLimit: .seconds(5), redirectsMax: 5,
            bodyBytesMax: 1 << 30, headBytesMax: 64 << 10, headFieldsMax: 128,
            connectionsMax: 4096, idleConnectionsMax: 128, idleConnectionsPerOriginMax: 32,
            idleConnectionLimit: .seconds(55),
            admission: OriginAdmission.Settings(
                connectionsMax: 256, queueMax: 512,
                circuit: CircuitLimits(failures: 20, openInterval: .seconds(5))),
            dnsCache: DNSCache.Settings(
                lifetime: .seconds(30), failureLifetime: .seconds(2), namesMax: 10_000))
    }
}
