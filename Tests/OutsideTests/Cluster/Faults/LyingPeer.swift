import Cluster
import Ground
import Harness
import NIOCore
import Wire

/// A peer that holds the cluster's secret and sends arbitrary statements: TLS and frames around the
/// decisions of `Cluster.PeerLink`, on a connection that it dials.
final class LyingPeer {
    private let socket: Socket
    private let session: TLSSession
    private var link: PeerLink
    private var input = ByteBuffer()
    /// The entry that it serves to any node.
    private var held: (entry: PeerEntry, body: [UInt8])?
    private var bodies: [UInt32: ByteBuffer] = [:]
    private var outcome: OfferOutcome?
    private var hasMet = false
    /// The node id that it claims.
    let id: NodeID

    struct Silent: Error {}

    /// Dials the node that listens for peers on `port`, and returns after the handshake, when the
    /// node regards it as a member.
    init(to port: Int, weight: UInt16 = 100, role: Member.Role = []) throws {
        var dice = SystemRandomNumberGenerator()
        id = NodeID(using: &dice)
        let member = Member(
            id: id, process: ProcessID(using: &dice),
            address: PeerAddress(host: "127.0.0.1", port: 9), weight: weight,
            versions: PeerProtocol.versions, role: role)
        link = PeerLink(
            .dialling,
            hello: Hello(member: member, incarnation: Incarnation(epoch: 1, count: 0)))
        let secret = Array(ClusterStage.secret.utf8)
        session = TLSSession(peer: try TLSPeerContext(secrets: [secret]), dials: true)
        socket = try Socket(port: port)
        session.start()
        try send()
        try run { hasMet }
    }

    /// Offers an entry, serves it if the node requests it, and returns whether the node has kept
    /// it.
    func offer(_ entry: PeerEntry, _ body: [UInt8]) throws -> Bool {
        held = (entry, body)
        outcome = nil
        let digest = EntryName(ofKey: entry.key).digest
        try link.send([
            PeerOffer(digest: digest, size: UInt64(body.count), touches: 1, isJustFetched: false)
        ])
        try flush()
        try run { outcome != nil }
        return outcome?.isStored == true
    }

    // MARK: Bytes

    /// Processes received bytes until `isDone`.
    private func run(until isDone: () -> Bool) throws {
        let deadline = Deadline.seconds(30)
        while !isDone() {
            var bytes = ByteBuffer()
            guard case .bytes = socket.receive(into: &bytes, bytesMax: 65_536, deadline) else {
                throw Silent()
            }
            session.receive(bytes)
            reading: while true {
                switch session.next() {
                case .needsMore: break reading
                case .established: try flush()
                case .data(var plaintext):
                    input.writeBuffer(&plaintext)
                    try takeFrames()
                case .closed, .failed: throw Silent()
                }
            }
            try flush()
        }
    }

    private func takeFrames() throws {
        while input.readableBytes >= PeerFrameHeader.bytesCount {
            let head = try PeerFrameHeader(input.readableBytesUInt8Span)
            let start = input.readerIndex + PeerFrameHeader.bytesCount
            guard let payload = input.getSlice(at: start, length: head.payloadBytes) else { return }
            input.moveReaderIndex(to: start + head.payloadBytes)
            let event = try link.frameReceived(
                head, payload: payload.readableBytesUInt8Span, now: Instant.zero)
            try handle(event)
        }
    }

    private func handle(_ event: PeerEvent) throws {
        switch event {
        case .helloReceived: hasMet = true
        case .offerOutcomesReceived(let outcomes): outcome = outcomes.first
        case .queryReceived(let stream, let query): try respond(to: query, on: stream)
        default: break
        }
    }

    private func respond(to query: PeerQuery, on stream: UInt32) throws {
        guard let held else { return try link.sendReply(.absent, on: stream) }
        try link.sendReply(.held(held.entry), on: stream)
        bodies[stream] = ByteBuffer(bytes: held.body)
        link.addBodyBytes(held.body.count, on: stream)
        link.completeBody(on: stream)
    }

    private func flush() throws {
        guard session.isEstablished else { return try send() }
        var frames: [ByteBuffer] = []
        framing: while true {
            switch link.nextOutput() {
            case .control(let frame): frames.append(ByteBuffer(bytes: frame))
            case .data(let head):
                let bytes = head.bytes
                frames.append(ByteBuffer(bytes: bytes.indices.map { bytes[$0] }))
                if let part = bodies[head.stream]?.readSlice(length: head.payloadBytes) {
                    frames.append(part)
                }
            case .idle, .close: break framing
            }
        }
        if !frames.isEmpty { session.write(frames, now: .zero) }
        try send()
    }

    private func send() throws {
        guard let output = session.takeOutput() else { return }
        try socket.send(Array(output.readableBytesView))
    }
}
