/// One connection between two nodes: what may come and go on it, in which order, and how much of
/// it; see <doc:PeerProtocol>.
///
/// The shell moves the bytes. Of what arrives it reads a head (``PeerFrameHeader``), then tells of
/// DATA at once (``dataArrived(_:)``) and of any other frame when its payload is whole
/// (``frameArrived(_:payload:now:)``). Of what is to go it asks with ``next()`` for as long as it
/// has room, writes what it is given in that order, and asks again after each call that may have
/// changed something. After a fault or ``close(_:)`` it sends what ``next()`` gives up to
/// ``PeerOutput/close``, and when the connection is gone it says ``connectionEnded()``, whoever
/// ended it.
///
/// Streams that the dialling side opens have odd numbers, those of the other side even ones, rising
/// and never used again.
package struct PeerLink: Sendable {
    package let side: Side
    package internal(set) var state = State.awaitingHello
    /// Why this side ended the connection, if the peer broke a rule.
    package internal(set) var fault: PeerFault?
    /// Frames of unknown kinds that were skipped.
    package internal(set) var skippedFrames: UInt64 = 0

    /// Of this side.
    let hello: Hello
    /// Of the peer; the least until its HELLO came.
    var peerLimits = LinkLimits.least

    var outboundQueries: [UInt32: OutboundQuery] = [:]
    var inboundQueries: [UInt32: InboundQuery] = [:]
    /// The next stream that this side opens; above ``lastStream`` when all were used.
    var nextStream: UInt64
    /// No stream that this side opens has a higher number.
    let lastStream: UInt32
    /// The last stream that the peer opened; 0 before the first.
    var lastPeerStream: UInt32 = 0
    var floodLimiter = FrameFloodLimiter()
    var invalidationDecoder = InvalidationMessageDecoder()
    /// The digest of the members and the set that the peer was told last.
    var sentMembershipDigest: UInt64?

    /// HELLO, gossip and grants: sent before everything else.
    var urgent = FrameQueue()
    /// Questions, answers, the ends of streams, and what else is no body: sent before bodies.
    var control = FrameQueue()
    /// Streams with something to send, each once: those that ended since are passed over.
    var readyStreams = FIFOQueue<UInt32>()

    /// Which side of the connection this is.
    package enum Side: Hashable, Sendable {
        case dialling
        case accepting
    }

    /// What may be done with the connection.
    package enum State: Hashable, Sendable {
        /// HELLO was said and not yet heard: nothing else is sent. Leads to any other.
        case awaitingHello
        /// Everything may come and go, in this version. Leads to ``leaving`` and ``ended``.
        case open(version: UInt16)
        /// GOODBYE waits to be sent behind what waits already; what comes is not looked at. Leads
        /// to ``ended``.
        case closing
        /// Nothing comes or goes any more.
        case ended
    }

    /// The most bytes of frames that wait, above which nothing is taken that can be refused.
    package static let queueBytesMax = 1 << 20
    /// The most bytes of frames that wait, above which the peer counts as not reading.
    package static let queueBytesLimit = 4 << 20
    /// Above so many bytes that wait FETCHING is not said: it would tell nothing new.
    static let queueBytesCongested = 64 << 10

    /// When so few questions are left another connection is to be opened.
    package static let queriesReserve: UInt64 = 1 << 20
    /// It is said again after so many questions.
    package static let reserveStep: UInt64 = 1 << 16

    /// A connection that begins, on which `hello` is said first; `lastStream` is the highest number
    /// of a stream.
    package init(_ side: Side, hello: Hello, lastStream: UInt32 = .max) {
        precondition(hello.limits.areUsable, "unusable limits: \(hello.limits)")
        self.side = side
        self.hello = hello
        self.lastStream = lastStream
        nextStream = side == .dialling ? 1 : 2
        urgent.append(hello.frame)
    }

    /// So many questions can still be asked on this connection.
    package var queriesRemaining: UInt64 {
        let end = UInt64(lastStream) + 1
        return nextStream < end ? (end - nextStream + 1) / 2 : 0
    }

    /// True if it is time to open another connection; now and then, from the question on with which
    /// the reserve is begun.
    package var isNearlyExhausted: Bool {
        queriesRemaining <= Self.queriesReserve && queriesRemaining % Self.reserveStep == 0
    }

    /// Questions of this side that are open, those that were cancelled and not yet ended included.
    package var outboundQueryCount: Int { outboundQueries.count }
    /// Questions of the peer that are open.
    package var inboundQueryCount: Int { inboundQueries.count }
    /// Bytes of frames that wait to be sent; bodies are not counted.
    package var queuedBytes: Int { urgent.bytesCount + control.bytesCount }

    /// True if the connection may be used.
    package var isOpen: Bool {
        if case .open = state { true } else { false }
    }

    /// Ends the connection with a reason, after what waits to be sent; bodies are broken off.
    ///
    /// Nothing if it ends already.
    package mutating func close(_ goodbye: Goodbye) {
        guard isOpen || state == .awaitingHello else { return }
        control.append(goodbye.frame)
        state = .closing
    }

    /// The connection is gone: every question of either side that is open is told of, in the order
    /// of their numbers, and is open no more.
    package mutating func connectionEnded() -> [PeerEvent] {
        var events: [PeerEvent] = []
        for stream in outboundQueries.keys.sorted() {
            guard let question = outboundQueries[stream], !question.isCancelled else { continue }
            let isHeld = question.state != .awaitingReply
            events.append(
                .connectionLost(
                    stream: stream, receivedBytes: isHeld ? question.receivedBytes : nil))
        }
        for stream in inboundQueries.keys.sorted() {
            events.append(.queryCancelled(stream: stream))
        }
        outboundQueries.removeAll()
        inboundQueries.removeAll()
        urgent.removeAll()
        control.removeAll()
        readyStreams.removeAll()
        state = .ended
        return events
    }

    /// Ends the connection because of what the peer did; what waits is not sent any more.
    mutating func fail(_ fault: PeerFault) {
        guard self.fault == nil, state != .ended else { return }
        self.fault = fault
        // Before the peer's HELLO nothing but this side's is urgent, and it may still have to go.
        if state != .awaitingHello { urgent.removeAll() }
        control.removeAll()
        control.append(fault.goodbye.frame)
        state = .closing
    }
}

/// What one side of a connection takes.
package struct LinkLimits: Hashable, Sendable {
    /// Bytes of a body in a frame; never more than ``PeerProtocol/dataBytesMax`` are sent.
    package var dataBytesMax: UInt32
    /// Bytes of another payload; never more than ``PeerProtocol/payloadBytesMax`` are sent.
    package var payloadBytesMax: UInt32
    /// Questions that it answers at once.
    package var streamsMax: UInt32
    /// Bytes of a body that may come on each stream before it grants more.
    package var windowBytes: UInt32

    package init(
        dataBytesMax: UInt32, payloadBytesMax: UInt32, streamsMax: UInt32, windowBytes: UInt32
    ) {
        self.dataBytesMax = dataBytesMax
        self.payloadBytesMax = payloadBytesMax
        self.streamsMax = streamsMax
        self.windowBytes = windowBytes
    }

    /// Those of ``PeerProtocol``.
    package static let usual = LinkLimits(
        dataBytesMax: UInt32(PeerProtocol.dataBytesMax),
        payloadBytesMax: UInt32(PeerProtocol.payloadBytesMax),
        streamsMax: UInt32(PeerProtocol.streamsMax),
        windowBytes: UInt32(PeerProtocol.windowBytes))

    /// The least that every version takes.
    package static let least = LinkLimits(
        dataBytesMax: 1 << 10, payloadBytesMax: UInt32(PeerProtocol.payloadBytesMax),
        streamsMax: 1, windowBytes: 1 << 10)

    /// True if none is below ``least`` and the window is not above
    /// ``PeerProtocol/windowBytesMax``.
    package var areUsable: Bool {
        dataBytesMax >= Self.least.dataBytesMax && payloadBytesMax >= Self.least.payloadBytesMax
            && streamsMax >= Self.least.streamsMax && windowBytes >= Self.least.windowBytes
            && Int(windowBytes) <= PeerProtocol.windowBytesMax
    }
}

/// What a frame from a peer means for the node.
package enum PeerEvent: Hashable, Sendable {
    /// Nothing: it was taken in, dropped, or skipped.
    case ignored
    /// The peer said HELLO: the connection may be used, in this version.
    case helloReceived(Hello, version: UInt16)
    /// The peer ends the connection: close it.
    case goodbyeReceived(Goodbye)
    case gossipReceived(Gossip)
    /// Take it in before anything that comes after it.
    case invalidationReceived(InvalidationMessage)
    case touchesReceived([AgedTouch])
    /// Answer with verdicts, after asking for what is wanted.
    case offersReceived([PeerOffer])
    case offerOutcomesReceived([OfferOutcome])
    /// Answer it on this stream.
    case queryReceived(stream: UInt32, PeerQuery)
    /// The asker wants no answer any more: stop what was begun for it; the stream is closed.
    case queryCancelled(stream: UInt32)
    /// To a question of this side; after a final one the stream is closed.
    case replyReceived(stream: UInt32, PeerReply)
    /// The body is whole; the stream is closed.
    case bodyEnded(stream: UInt32, StreamEnd)
    /// The body ends here and is not whole; the stream is closed.
    case streamReset(stream: UInt32, StreamReset.Code)
    /// The connection is gone and this question has no whole answer; so many bytes of a body came,
    /// nil if not even its head.
    case connectionLost(stream: UInt32, receivedBytes: UInt64?)
}

/// What is to be done with the payload of a DATA frame.
package enum DataDisposition: Hashable, Sendable {
    /// Hand it on, and say ``PeerLink/taken(_:on:)`` when it is.
    case deliver(stream: UInt32, bytesCount: Int)
    /// Drop it: nobody wants it any more.
    case discard(bytesCount: Int)
}

/// What is to be sent next.
package enum PeerOutput: Hashable, Sendable {
    /// Nothing.
    case idle
    /// These bytes, a whole frame.
    case control([UInt8])
    /// This head, then as many bytes as it says of the body of its stream.
    case data(PeerFrameHeader)
    /// Nothing ever: close when everything is written.
    case close
}
