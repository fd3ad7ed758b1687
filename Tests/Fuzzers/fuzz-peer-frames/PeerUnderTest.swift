import Cluster
import Ground

/// A node at the end of a connection, which answers whatever it is asked.
struct PeerUnderTest {
    private var link: PeerLink
    private var fault: PeerFault?
    /// Of what arrives of a body, one piece in so many is taken.
    private let takesOneIn: Int
    private var pieces = 0
    private var now = Instant.zero
    /// Questions of this side that no event has ended.
    private var open: Set<UInt32> = []
    private var exchange: ExchangeUnderTest
    /// Ends when HELLO comes.
    private var isStranger = true

    private static let streamsMax: UInt32 = 4

    init(scene: UInt8, takesOneIn: Int) {
        let limits = LinkLimits(
            dataBytesMax: 16_384, payloadBytesMax: 65_536, streamsMax: Self.streamsMax,
            windowBytes: 1_024)
        let side: PeerLink.Plane = scene & 1 == 0 ? .dialling : .accepting
        link = PeerLink(side, hello: Self.hello(1, limits))
        exchange = ExchangeUnderTest(node: Self.node(1), peer: Self.node(2), now: now)
        self.takesOneIn = takesOneIn
        guard scene & 2 == 0 else { return }
        feed(Self.hello(2, limits).frame)
        let question = PeerQuery(
            .get, name: EntryName([UInt8](repeating: 7, count: 32).span), key: [1])
        for _ in 0..<Int(scene >> 2 & 3) {
            if let stream = try? link.ask(question) { open.insert(stream) }
        }
        if scene & 16 != 0, let first = open.min() {
            link.cancel(first)
            open.remove(first)
        }
    }

    private static func node(_ number: UInt64) -> NodeID { NodeID(low: number, high: 0) }

    private static func hello(_ number: UInt64, _ limits: LinkLimits) -> Hello {
        let member = TrackedMember(
            id: node(number), process: ProcessID(high: 0, low: number),
            address: PeerAddress(.v4(0x7F00_0001), port: 8082), weight: 100,
            versions: PeerProtocol.versions, role: [])
        return Hello(
            member: member, incarnation: Incarnation(epoch: 1, count: 0), limits: limits)
    }

    mutating func feed(_ bytes: [UInt8]) {
        var position = 0
        while position + PeerFrameHeader.bytesCount <= bytes.count, fault == nil {
            let start = position + PeerFrameHeader.bytesCount
            do throws(PeerFault) {
                let head = try PeerFrameHeader(bytes.span.extracting(position..<start))
                position = start + head.payloadBytes
                guard position <= bytes.count else { break }
                let payload = Array(bytes[start..<position])
                // The reserved bytes of a head are not looked at: here time passes by them.
                now = now + .milliseconds(1 + Int64(bytes[start - 7]) * 40)
                try receive(head, sealedRecords(head.kind, payload))
            } catch {
                fault = error
                link.headFailed(error)
            }
            send()
            precondition(link.answeringCount <= Int(Self.streamsMax))
        }
    }

    private mutating func receive(
        _ head: PeerFrameHeader, _ payload: [UInt8]
    ) throws(PeerFault) {
        say(exchange.passed(to: now))
        if head.kind == .data {
            guard case .deliver(let stream, let count) = try link.dataArrived(head) else { return }
            precondition(open.contains(stream) && count == payload.count)
            pieces += 1
            if pieces % takesOneIn == 0 { link.taken(count, on: stream) }
            return
        }
        switch try link.frameArrived(head, payload: payload.span, now: now) {
        case .met: meet()
        case .heard(let message):
            checkRewriting(message)
            if !isStranger { say(exchange.heard(message, now: now)) }
        case .asked(let stream, let question):
            if !isStranger { say(exchange.asked(question, now: now)) }
            response(question, on: stream)
        case .answered(let stream, let response):
            precondition(open.contains(stream))
            if response.isFinal { open.remove(stream) }
        case .ended(let stream, _), .broken(let stream, _):
            precondition(open.remove(stream) != nil)
        default: break
        }
    }

    private mutating func meet() {
        isStranger = false
        say(exchange.begin(now: now))
    }

    /// Sends what can be sent at all, unless too much waits.
    private mutating func say(_ messages: [InvalidationMessage]) {
        for message in messages {
            do throws(SendError) {
                try link.send(message)
            } catch {
                precondition([.notOpen, .queueFull].contains(error), "it cannot be said: \(error)")
            }
        }
    }

    private mutating func response(_ question: PeerQuery, on stream: UInt32) {
        guard question.kind == .get else {
            _ = try? link.response(.absent, on: stream)
            return
        }
        let facts = EntryMetadata(
            size: 5_000, bornAt: now, freshUntil: now, flags: [], lastModified: nil,
            date: WallTime(seconds: 0), entityTag: .empty)
        let entry = PeerEntry(
            status: 200, source: .memory, facts: PeerEntryFacts(facts, size: 5_000, now: now),
            version: .zero, head: [])
        guard (try? link.response(.held(entry), on: stream)) != nil else { return }
        link.bodyBecameReady(5_000, on: stream)
        link.bodyBecameWhole(on: stream)
    }

    private mutating func send() {
        for _ in 0..<10_000 {
            switch link.next() {
            case .nothing, .close: return
            case .control(let frame):
                guard let head = try? PeerFrameHeader(frame.span) else {
                    preconditionFailure("a frame without a head")
                }
                precondition(fault == nil || [.goodbye, .hello].contains(head.kind))
            case .data(let head): precondition(fault == nil && head.payloadBytes > 0)
            }
        }
        preconditionFailure("the sending does not end")
    }

    /// The connection is gone.
    mutating func finish() {
        let lost = link.connectionEnded().compactMap { event in
            if case .lost(let stream, _) = event { stream } else { nil }
        }
        precondition(lost == open.sorted(), "a question is forgotten")
        precondition(link.next() == .close)
    }
}
