/// The protocol state of one connection between two nodes; see <doc:PeerProtocol>.
///
/// Decides what may be sent and received, in which order and how much of it. The shell moves the
/// bytes. For received bytes it decodes a header (``PeerFrameHeader``), then reports DATA at once
/// (``dataReceived(_:)``) and any other frame when its payload is complete
/// (``frameReceived(_:payload:now:)``). For sending it calls ``nextOutput()`` while the socket
/// accepts bytes, writes the results in order, and calls it again after each call that may have
/// changed something. After a fault or ``close(_:)`` it sends the output up to
/// ``PeerOutput/close``. When the connection has ended, on either side, it calls
/// ``connectionEnded()``.
///
/// The dialling side opens streams with odd numbers, the accepting side with even ones, ascending
/// and never reused.
package struct PeerLink: Sendable {
    /// This node's side of the connection.
    package let side: Side
    /// The state of the connection.
    package internal(set) var state = State.awaitingHello
    /// The peer's protocol violation, if this side ended the connection because of one.
    package internal(set) var fault: PeerFault?
    /// The number of skipped frames of unknown kinds.
    package internal(set) var skippedFrames: UInt64 = 0

    /// This side's HELLO.
    let hello: Hello
    /// The peer's limits; ``LinkLimits/least`` until its HELLO arrives.
    var peerLimits = LinkLimits.least

    /// Open queries of this side, by stream.
    var outboundQueries: [UInt32: OutboundQuery] = [:]
    /// Open queries of the peer, by stream.
    var inboundQueries: [UInt32: InboundQuery] = [:]
    /// The next stream that this side opens; above ``lastStream`` when all are used.
    var nextStream: UInt64
    /// The highest stream number that this side may open.
    let lastStream: UInt32
    /// The last stream that the peer opened; 0 before the first.
    var lastPeerStream: UInt32 = 0
    var floodLimiter = FrameFloodLimiter()
    var invalidationDecoder = InvalidationMessageDecoder()
    /// The digest of the members and the voter set last sent to the peer.
    var sentMembershipDigest: UInt64?

    /// HELLO, gossip and grants: sent before everything else.
    var urgent = FrameQueue()
    /// All other frames without a body, such as queries and responses: sent before bodies.
    var control = FrameQueue()
    /// The round-robin queue of streams with bytes to send, each at most once; ended ones are
    /// skipped.
    var readyStreams = FIFOQueue<UInt32>()

    /// A side of a connection.
    package enum Side: Hashable, Sendable {
        case dialling
        case accepting
    }

    /// The state of a connection.
    package enum State: Hashable, Sendable {
        /// HELLO was sent and not yet received; nothing else is sent. Leads to any other state.
        case awaitingHello
        /// All frames may be sent and received, in this version. Leads to ``closing`` and
        /// ``ended``.
        case open(version: UInt16)
        /// GOODBYE is queued after the frames that wait; received frames are ignored. Leads to
        /// ``ended``.
        case closing
        /// The connection has ended.
        case ended
    }

    /// The queued bytes above which refusable messages are refused.
    package static let queueBytesMax = 1 << 20
    /// The queued bytes above which the peer counts as not reading and the connection is closed.
    package static let queueBytesLimit = 4 << 20
    /// The queued bytes above which FETCHING and interim responses are omitted, which a requester
    /// can do without.
    static let queueBytesCongested = 64 << 10

    /// The number of remaining queries from which another connection is to be opened.
    package static let queriesReserve: UInt64 = 1 << 20
    /// The number of queries between repeated notices of that.
    package static let reserveStep: UInt64 = 1 << 16

    /// Creates a link that sends `hello` first.
    ///
    /// - Parameters:
    ///   - side: This node's side of the connection.
    ///   - hello: This side's HELLO.
    ///   - lastStream: The highest stream number that this side may open.
    package init(_ side: Side, hello: Hello, lastStream: UInt32 = .max) {
        precondition(hello.limits.areUsable, "unusable limits: \(hello.limits)")
        self.side = side
        self.hello = hello
        self.lastStream = lastStream
        nextStream = side == .dialling ? 1 : 2
        urgent.append(hello.frame)
    }

    /// The number of queries that this side can still open on this connection.
    package var queriesRemaining: UInt64 {
        let end = UInt64(lastStream) + 1
        return nextStream < end ? (end - nextStream + 1) / 2 : 0
    }

    /// True if another connection should be opened.
    ///
    /// True for one query in every ``reserveStep`` from the beginning of the reserve.
    package var isNearlyExhausted: Bool {
        queriesRemaining <= Self.queriesReserve && queriesRemaining % Self.reserveStep == 0
    }

    /// The number of open queries of this side, including cancelled ones that have not ended.
    package var outboundQueryCount: Int { outboundQueries.count }
    /// The number of open queries of the peer.
    package var inboundQueryCount: Int { inboundQueries.count }
    /// The bytes of queued frames, without bodies.
    package var queuedBytes: Int { urgent.bytesCount + control.bytesCount }

    /// True if queries and other messages may be sent.
    package var isOpen: Bool {
        if case .open = state { true } else { false }
    }

    /// Closes the connection with a reason, after the queued frames; bodies are aborted.
    ///
    /// Does nothing if the connection is closing already.
    package mutating func close(_ goodbye: Goodbye) {
        guard isOpen || state == .awaitingHello else { return }
        control.append(goodbye.frame)
        state = .closing
    }

    /// Ends the link after its connection was lost.
    ///
    /// Returns an event for every open query of this side that was not cancelled, then for every
    /// open query of the peer, each in the order of stream numbers, and closes them.
    package mutating func connectionEnded() -> [PeerEvent] {
        var events: [PeerEvent] = []
        for stream in outboundQueries.keys.sorted() {
            guard let query = outboundQueries[stream], !query.isCancelled else { continue }
            let isHeld = query.state != .awaitingReply
            events.append(
                .connectionLost(
                    stream: stream, receivedBytes: isHeld ? query.receivedBytes : nil))
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

    /// Closes the connection because of a protocol violation; queued frames are dropped.
    mutating func fail(_ fault: PeerFault) {
        guard self.fault == nil, state != .ended else { return }
        self.fault = fault
        // Before the peer's HELLO, the only urgent frame is this side's HELLO, which must still be
        // sent.
        if state != .awaitingHello { urgent.removeAll() }
        control.removeAll()
        control.append(fault.goodbye.frame)
        state = .closing
    }
}

/// The limits that one side of a connection announces.
package struct LinkLimits: Hashable, Sendable {
    /// Maximum body bytes in a frame; at most ``PeerProtocol/dataBytesMax`` are sent in any case.
    package var dataBytesMax: UInt32
    /// Maximum bytes of any other payload; at most ``PeerProtocol/payloadBytesMax`` are sent in any
    /// case.
    package var payloadBytesMax: UInt32
    /// Maximum number of open queries that it accepts.
    package var streamsMax: UInt32
    /// The body bytes that it accepts on each stream before a grant.
    package var windowBytes: UInt32

    /// Creates limits from their parts.
    package init(
        dataBytesMax: UInt32, payloadBytesMax: UInt32, streamsMax: UInt32, windowBytes: UInt32
    ) {
        self.dataBytesMax = dataBytesMax
        self.payloadBytesMax = payloadBytesMax
        self.streamsMax = streamsMax
        self.windowBytes = windowBytes
    }

    /// The limits of ``PeerProtocol``, which a node announces.
    package static let usual = LinkLimits(
        dataBytesMax: UInt32(PeerProtocol.dataBytesMax),
        payloadBytesMax: UInt32(PeerProtocol.payloadBytesMax),
        streamsMax: UInt32(PeerProtocol.streamsMax),
        windowBytes: UInt32(PeerProtocol.windowBytes))

    /// The lowest limits that a node of any version may announce.
    package static let least = LinkLimits(
        dataBytesMax: 1 << 10, payloadBytesMax: UInt32(PeerProtocol.payloadBytesMax),
        streamsMax: 1, windowBytes: 1 << 10)

    /// True if no limit is below ``least`` and the window is at most
    /// ``PeerProtocol/windowBytesMax``.
    package var areUsable: Bool {
        dataBytesMax >= Self.least.dataBytesMax && payloadBytesMax >= Self.least.payloadBytesMax
            && streamsMax >= Self.least.streamsMax && windowBytes >= Self.least.windowBytes
            && Int(windowBytes) <= PeerProtocol.windowBytesMax
    }
}

/// The effect of a received frame, for the node.
package enum PeerEvent: Hashable, Sendable {
    /// Nothing to do: the frame was handled, dropped or skipped.
    case ignored
    /// The peer's HELLO: the connection is usable in this version.
    case helloReceived(Hello, version: UInt16)
    /// The peer closes the connection, which must be closed now.
    case goodbyeReceived(Goodbye)
    /// A membership message.
    case gossipReceived(Gossip)
    /// A message about invalidations, which must be handled before any later event.
    case invalidationReceived(InvalidationMessage)
    /// Recent uses of entries on the peer.
    case touchesReceived([AgedTouch])
    /// Offers, to be replied to with outcomes once the wanted entries were requested.
    case offersReceived([PeerOffer])
    /// Outcomes of this side's offers.
    case offerOutcomesReceived([OfferOutcome])
    /// The peer's summary of itself, in place of the one before.
    case summaryReceived(MemberSummary)
    /// A query, to be responded to on this stream.
    case queryReceived(stream: UInt32, PeerQuery)
    /// The requester cancelled its query: its work must stop; the stream is closed.
    case queryCancelled(stream: UInt32)
    /// A response to a query of this side; a final one closes the stream.
    case replyReceived(stream: UInt32, PeerReply)
    /// The body is complete; the stream is closed.
    case bodyEnded(stream: UInt32, StreamEnd)
    /// The body ends here, incomplete; the stream is closed.
    case streamReset(stream: UInt32, StreamReset.Code)
    /// The connection was lost before this query had a complete response.
    ///
    /// `receivedBytes` counts the body; `nil` if not even its header arrived.
    case connectionLost(stream: UInt32, receivedBytes: UInt64?)
}

/// The handling of a DATA frame's payload.
package enum DataDisposition: Hashable, Sendable {
    /// Deliver it, and call ``PeerLink/bytesConsumed(_:on:)`` once it is consumed.
    case deliver(stream: UInt32, bytesCount: Int)
    /// Drop it; the query was cancelled.
    case discard(bytesCount: Int)
}

/// The next output of a link.
package enum PeerOutput: Hashable, Sendable {
    /// Nothing to send for now.
    case idle
    /// A complete frame.
    case control([UInt8])
    /// A header, to be followed by as many body bytes of its stream as it announces.
    case data(PeerFrameHeader)
    /// Close the connection once everything is written.
    case close
}
