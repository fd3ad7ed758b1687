import Cluster
import Ground

/// A node at the end of a connection, which replies to every query.
struct PeerUnderTest {
    private var link: PeerLink
    private var fault: PeerFault?
    /// One in this many pieces of a body is consumed.
    private let takesOneIn: Int
    private var pieces = 0
    private var now = Instant.zero
    /// The queries of this side that no event has ended.
    private var open: Set<UInt32> = []
    private var exchange: ExchangeUnderTest
    /// True until HELLO arrives.
    private var awaitsHello = true

    private static let streamsMax: UInt32 = 4

    init(scene: UInt8, takesOneIn: Int) {
        let limits = LinkLimits(
            dataBytesMax: 16_384, payloadBytesMax: 65_536, streamsMax: Self.streamsMax,
            windowBytes: 1_024)
        let side: PeerLink.Side = scene & 1 == 0 ? .dialling : .accepting
        link = PeerLink(side, hello: Self.hello(1, limits))
        exchange = ExchangeUnderTest(node: Self.node(1), peer: Self.node(2), now: now)
        self.takesOneIn = takesOneIn
        guard scene & 2 == 0 else { return }
        feed(Self.hello(2, limits).frame)
        let query = PeerQuery(
            .get, name: EntryName([UInt8](repeating: 7, count: 32).span), key: [1])
        for _ in 0..<Int(scene >> 2 & 3) {
            if let stream = try? link.sendQuery(query) { open.insert(stream) }
        }
        if scene & 16 != 0, let first = open.min() {
            link.cancel(first)
            open.remove(first)
        }
    }

    private static func node(_ number: UInt64) -> NodeID { NodeID(low: number, high: 0) }

    private static func hello(_ number: UInt64, _ limits: LinkLimits) -> Hello {
        let member = Member(
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
                // The reserved bytes of a header are not evaluated: here they advance the clock.
                now = now + .milliseconds(1 + Int64(bytes[start - 7]) * 40)
                try receive(head, sealedRecords(head.kind, payload))
            } catch {
                fault = error
                link.headerInvalid(error)
            }
            send()
            precondition(link.inboundQueryCount <= Int(Self.streamsMax))
        }
    }

    private mutating func receive(
        _ head: PeerFrameHeader, _ payload: [UInt8]
    ) throws(PeerFault) {
        send(exchange.advance(to: now))
        if head.kind == .data {
            guard case .deliver(let stream, let count) = try link.dataReceived(head) else { return }
            precondition(open.contains(stream) && count == payload.count)
            pieces += 1
            if pieces % takesOneIn == 0 { link.bytesConsumed(count, on: stream) }
            return
        }
        switch try link.frameReceived(head, payload: payload.span, now: now) {
        case .helloReceived: meet()
        case .invalidationReceived(let message):
            checkRewriting(message)
            if !awaitsHello { send(exchange.receive(message, now: now)) }
        case .queryReceived(let stream, let query):
            if !awaitsHello { send(exchange.receive(query, now: now)) }
            reply(query, on: stream)
        case .replyReceived(let stream, let reply):
            precondition(open.contains(stream))
            if reply.isFinal { open.remove(stream) }
        case .bodyEnded(let stream, _), .streamReset(let stream, _):
            precondition(open.remove(stream) != nil)
        default: break
        }
    }

    private mutating func meet() {
        awaitsHello = false
        send(exchange.begin(now: now))
    }

    /// Sends the messages, unless too much is queued.
    private mutating func send(_ messages: [InvalidationMessage]) {
        for message in messages {
            do throws(SendError) {
                try link.send(message)
            } catch {
                precondition([.notOpen, .queueFull].contains(error), "it cannot be sent: \(error)")
            }
        }
    }

    private mutating func reply(_ query: PeerQuery, on stream: UInt32) {
        guard query.kind == .get else {
            _ = try? link.sendReply(.absent, on: stream)
            return
        }
        let metadata = EntryMetadata(
            size: 5_000, generatedAt: now, freshUntil: now, flags: [], lastModified: nil,
            date: WallTime(seconds: 0), entityTag: .empty)
        let entry = PeerEntry(
            status: 200, source: .memory, facts: PeerEntryFacts(metadata, size: 5_000, now: now),
            version: .zero, head: [])
        guard (try? link.sendReply(.held(entry), on: stream)) != nil else { return }
        link.addBodyBytes(5_000, on: stream)
        link.completeBody(on: stream)
    }

    private mutating func send() {
        for _ in 0..<10_000 {
            switch link.nextOutput() {
            case .idle, .close: return
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

    /// Ends the connection.
    mutating func finish() {
        let lost = link.connectionEnded().compactMap { event in
            if case .connectionLost(let stream, _) = event { stream } else { nil }
        }
        precondition(lost == open.sorted(), "a question is forgotten")
        precondition(link.nextOutput() == .close)
    }
}
