import Ground
import NIOCore

/// One connection to an origin, as the client, its pool and the gate count it, whatever is spoken
/// on it.
final class OriginConnection {
    /// What is spoken on a connection that is open.
    enum ProtocolHandler {
        case http1(OriginHTTP1Handler)
        case http2(OriginHTTP2Handler)
    }

    let id: OriginConnectionID
    let origin: OriginAuthority
    /// Under which rules of the client it was opened.
    let generation: Int
    private(set) weak var client: OriginClient?
    /// Where it leads; nil if only a proxy knows.
    var address: IPAddress?
    /// Whose attempt it is; nil once it is used or given up.
    var transaction: OriginTransaction?
    /// Only HTTP/1.1 will do for whoever opens it.
    var isForUpgrade: Bool { transaction?.request.upgrade.isEmpty == false }
    /// Number of the hop that opened it, while others wait to hear how many requests the origin
    /// allows on it at once.
    var openerID: UInt64?
    /// To the origin, or to a proxy while a tunnel is asked for.
    private var channel: (any Channel)?
    private(set) var protocolHandler: ProtocolHandler?
    /// It is counted as idle by the gate.
    var isIdle = false
    /// The gate has asked for its place.
    var isCloseRequested = false
    private(set) var isAbandoned = false

    init(id: OriginConnectionID, origin: OriginAuthority, generation: Int, client: OriginClient) {
        self.id = id
        self.origin = origin
        self.generation = generation
        self.client = client
    }

    /// A channel is being connected for it, in place of any before.
    func channelCreated(_ channel: any Channel) {
        self.channel = channel
        if isAbandoned { channel.close(promise: nil) }
    }

    /// It is open, and `speaker` is what is spoken on it.
    func activate(_ speaker: ProtocolHandler) throws {
        self.protocolHandler = speaker
        guard let pipeline = channel?.pipeline.syncOperations else { return }
        switch speaker {
        case .http1(let handler): try pipeline.addHandler(handler)
        case .http2(let handler): try pipeline.addHandler(handler)
        }
    }

    /// Puts a handler behind those that there are.
    func add(_ handler: any ChannelHandler) throws {
        try channel?.pipeline.syncOperations.addHandler(handler)
    }

    /// Gives the connection, or a new stream of it, to a hop.
    func makeTransport(_ hop: OriginTransaction) -> any OriginTransport {
        self.transaction = nil
        switch protocolHandler {
        case .http1(let handler):
            handler.transaction = hop
            return handler
        case .http2(let handler): return handler.makeStream(for: hop)
        case nil: preconditionFailure("connection \(id) to \(origin) is used before it is open")
        }
    }

    /// Several fetches may use it at one time.
    var isShared: Bool {
        if case .http2? = protocolHandler { true } else { false }
    }

    /// Fetches that it can carry beside those that it carries; 0 unless it is shared.
    var availableStreams: Int {
        if case .http2(let handler)? = protocolHandler, !isAbandoned {
            handler.availableStreams
        } else {
            0
        }
    }

    /// True once the origin has said how many requests it allows at once; never on HTTP/1.1.
    var hasSettings: Bool {
        if case .http2(let handler)? = protocolHandler { handler.hasSettings } else { false }
    }

    /// True if the connection broke, was closed or given up, or cannot be used again.
    var isUnusable: Bool {
        if isAbandoned { return true }
        return switch protocolHandler {
        case .http1(let handler): handler.isUnusable
        case .http2(let handler): handler.isUnusable
        case nil: false
        }
    }

    /// Waits without a fetch.
    func markIdle() {
        if case .http1(let handler)? = protocolHandler { handler.deliverPending() }
    }

    /// Its channel is closed.
    func channelClosed() {
        isAbandoned = true
        protocolHandler = nil
        channel = nil
    }

    /// Nothing more is wanted of the connection, whatever state it is in.
    func close() {
        isAbandoned = true
        transaction = nil
        if case .http1(let handler)? = protocolHandler { handler.abandon() }
        channel?.close(promise: nil)
    }
}

/// What carries one question and its answer: a connection of HTTP/1.1, or a stream of HTTP/2.
///
/// It tells its hop what it finds, through ``OriginTransaction/found(_:isReusable:)`` and its like,
/// and holds what comes while the hop is paused.
protocol OriginTransport: AnyObject {
    /// Writes a request with what there is of its body, and waits for the answer.
    func send(_ request: OriginFetchRequest, _ body: OutgoingBodyPart)
    /// Writes more of the request's body; a hop that is still there is told when that is done.
    func write(_ body: OutgoingBodyPart)
    /// False while much of what was written has not gone, or there is nothing to write to.
    var isWritable: Bool { get }
    /// All that was written has gone.
    var isFlushed: Bool { get }
    /// Hands over what is held while the hop wants it, then what comes.
    func deliverPending()
    /// The origin has kept silent for so long that the hop gives up.
    func responseTimedOut()
    /// The hop is over; unless `closing`, the answer and the request are whole.
    func release(closing: Bool)
}
