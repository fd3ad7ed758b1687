import Cluster
import Ground

/// An end of a connection as the shell drives it; frames are exchanged as bytes.
///
/// The bytes of a body follow from its stream and offset, so that they need not be kept.
struct PeerEnd {
    var link: PeerLink
    /// The events in order of arrival, without DATA.
    private(set) var events: [PeerEvent] = []
    /// The received bytes of bodies that are not taken yet.
    private(set) var arrived: [UInt32: Int] = [:]
    /// The dropped bytes of bodies.
    private(set) var discarded = 0
    private(set) var fault: PeerFault?
    private var unread: [UInt8] = []
    /// The bytes of ``unread`` that were read.
    private var position = 0
    /// The stream and the remaining bytes of the DATA frame being read.
    private var body = (stream: UInt32(0), left: 0)
    /// All received bytes of bodies.
    private(set) var receivedBytes: [UInt32: Int] = [:]
    private var sentBytes: [UInt32: Int] = [:]
    /// The bytes of bodies with a wrong value for their offset.
    private(set) var misplaced = 0

    init(_ side: PeerLink.Side, hello: Hello) {
        link = PeerLink(side, hello: hello)
    }

    /// Receives bytes from the wire, however they are split.
    mutating func receive(_ bytes: some Sequence<UInt8>, now: Instant = .zero) {
        unread += bytes
        do throws(PeerFault) {
            while try receiveOne(now) {}
        } catch {
            fault = fault ?? error
        }
        unread.removeFirst(position)
        position = 0
    }

    /// Performs one step; false if there are not enough bytes.
    private mutating func receiveOne(_ now: Instant) throws(PeerFault) -> Bool {
        if body.left > 0 { return receiveBody() }
        let start = position + PeerFrameHeader.bytesCount
        guard start <= unread.count else { return false }
        let head = try PeerFrameHeader(unread.span.extracting(position..<start))
        if head.kind == .data {
            position = start
            body = (head.stream, head.payloadBytes)
            switch try link.dataReceived(head) {
            case .deliver(let stream, let count): arrived[stream, default: 0] += count
            case .discard(let count): discarded += count
            }
            return true
        }
        let end = start + head.payloadBytes
        guard end <= unread.count else { return false }
        position = end
        let payload = Array(unread[start..<end])
        let event = try link.frameReceived(head, payload: payload.span, now: now)
        if event != .ignored { events.append(event) }
        return true
    }

    private mutating func receiveBody() -> Bool {
        let count = min(body.left, unread.count - position)
        let start = receivedBytes[body.stream] ?? 0
        for place in 0..<count
        where unread[position + place] != Self.bodyByte(body.stream, start + place) {
            misplaced += 1
        }
        receivedBytes[body.stream] = start + count
        body.left -= count
        position += count
        return count > 0
    }

    /// The byte of the body on `stream` at this offset.
    static func bodyByte(_ stream: UInt32, _ place: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: Int(stream) &* 61 &+ place &+ place >> 8)
    }

    /// Takes the events since the last call.
    mutating func takeEvents() -> [PeerEvent] {
        defer { events = [] }
        return events
    }

    /// Takes received bytes of a body, by default all.
    mutating func take(_ stream: UInt32, atMost most: Int = .max) -> Int {
        let count = min(arrived[stream] ?? 0, most)
        guard count > 0 else { return 0 }
        arrived[stream, default: 0] -= count
        link.bytesConsumed(count, on: stream)
        return count
    }

    /// Encodes everything that is ready to be sent.
    mutating func bytes(framesMax: Int = .max) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<framesMax {
            switch link.nextOutput() {
            case .idle, .close: return bytes
            case .control(let frame): bytes += frame
            case .data(let head):
                let written = head.bytes
                for index in written.indices { bytes.append(written[index]) }
                let start = sentBytes[head.stream] ?? 0
                bytes += (start..<start + head.payloadBytes).map {
                    Self.bodyByte(head.stream, $0)
                }
                sentBytes[head.stream] = start + head.payloadBytes
            }
        }
        return bytes
    }
}

/// Two ends and the wire between them.
struct PeerPair {
    var dialling: PeerEnd
    var accepting: PeerEnd

    /// Two ends that have exchanged HELLO.
    init(dialling: LinkLimits = .usual, accepting: LinkLimits = .usual) {
        self.dialling = PeerEnd(.dialling, hello: .of(1, dialling))
        self.accepting = PeerEnd(.accepting, hello: .of(2, accepting))
        run()
        _ = self.dialling.takeEvents()
        _ = self.accepting.takeEvents()
    }

    /// A pair whose dialling end has sent a query, with the next reply of the other, if any.
    static func asked(
        dialling: LinkLimits = .usual, accepting: LinkLimits = .usual, response: PeerReply? = nil
    ) throws -> (pair: PeerPair, stream: UInt32) {
        var pair = PeerPair(dialling: dialling, accepting: accepting)
        let stream = try pair.dialling.link.sendQuery(PeerSamples.question)
        pair.run()
        if let response { try pair.accepting.link.sendReply(response, on: stream) }
        return (pair, stream)
    }

    /// Delivers frames until nothing is left to send.
    mutating func run() {
        while true {
            let (there, back) = (dialling.bytes(), accepting.bytes())
            if there.isEmpty, back.isEmpty { return }
            accepting.receive(there)
            dialling.receive(back)
        }
    }
}

extension Hello {
    /// The HELLO of the process with this number.
    static func of(_ number: UInt64, _ limits: LinkLimits = .usual) -> Hello {
        var hello = PeerSamples.hello
        hello.member.id = NodeID(low: number, high: 0)
        hello.member.process = ProcessID(high: 0, low: number)
        hello.limits = limits
        return hello
    }
}

extension LinkLimits {
    /// The usual limits with these exceptions.
    static func limits(
        streamsMax: UInt32 = 1_024, windowBytes: UInt32 = 262_144, dataBytesMax: UInt32 = 16_384
    ) -> LinkLimits {
        var limits = usual
        limits.streamsMax = streamsMax
        limits.windowBytes = windowBytes
        limits.dataBytesMax = dataBytesMax
        return limits
    }
}

extension PeerReply {
    /// A reply that an entry of this size is stored.
    static func held(size: UInt64?) -> PeerReply {
        var entry = PeerSamples.entry
        entry.facts.size = size
        return .held(entry)
    }
}
