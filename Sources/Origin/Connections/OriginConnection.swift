import Ground
import NIOCore

/// One connection to an origin, independent of the protocol spoken on it, as the client, its pool
/// and admission control count it.
///
/// Confined to its client's event loop.
final class OriginConnection {
    /// The handler of an open connection.
    enum ProtocolHandler {
        case http1(OriginHTTP1Handler)
        case http2(OriginHTTP2Handler)
    }

    let id: OriginConnectionID
    let origin: OriginAuthority
    /// The client's configuration generation in which the connection was opened.
    let generation: Int
    private(set) weak var client: OriginClient?
    /// The peer's address; `nil` if only a proxy knows it.
    var address: IPAddress?
    /// The transaction that opens the connection; `nil` once it is in use or abandoned.
    var transaction: OriginTransaction?
    /// True if the connection must speak HTTP/1.1, because its transaction requests an upgrade.
    var isForUpgrade: Bool { transaction?.request.upgrade.isEmpty == false }
    /// Number of the transaction that opened the connection, while others wait to learn how many
    /// concurrent requests the origin allows on it.
    var openerID: UInt64?
    /// The channel to the origin, or to a proxy.
    private var channel: (any Channel)?
    /// The protocol spoken; `nil` before activation, and once the channel is closed.
    private(set) var protocolHandler: ProtocolHandler?
    /// True while admission control counts the connection as idle.
    var isIdle = false
    /// True if admission control has requested its slot.
    var isCloseRequested = false
    /// True once the connection is closed, or is to be closed.
    private(set) var isAbandoned = false

    init(id: OriginConnectionID, origin: OriginAuthority, generation: Int, client: OriginClient) {
        self.id = id
        self.origin = origin
        self.generation = generation
        self.client = client
    }

    /// Adopts the channel that is being connected, in place of an earlier one.
    func channelCreated(_ channel: any Channel) {
        self.channel = channel
        if isAbandoned { channel.close(promise: nil) }
    }

    /// Opens the connection for use, with `speaker` as its protocol handler.
    ///
    /// - Throws: the pipeline's error if the channel is closed.
    func activate(_ speaker: ProtocolHandler) throws {
        self.protocolHandler = speaker
        guard let pipeline = channel?.pipeline.syncOperations else { return }
        switch speaker {
        case .http1(let handler): try pipeline.addHandler(handler)
        case .http2(let handler): try pipeline.addHandler(handler)
        }
    }

    /// Appends a handler to the channel's pipeline; does nothing while there is no channel.
    ///
    /// - Throws: the pipeline's error if the channel is closed.
    func add(_ handler: any ChannelHandler) throws {
        try channel?.pipeline.syncOperations.addHandler(handler)
    }

    /// Assigns the connection, or a new stream of it, to a transaction; the connection must have
    /// been activated.
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

    /// True if several fetches may use the connection at a time.
    var isShared: Bool {
        if case .http2? = protocolHandler { true } else { false }
    }

    /// Number of further fetches that the connection can carry; 0 unless it is shared.
    var availableStreams: Int {
        if case .http2(let handler)? = protocolHandler, !isAbandoned {
            handler.availableStreams
        } else {
            0
        }
    }

    /// True once the origin's SETTINGS have arrived; never on HTTP/1.1.
    var hasSettings: Bool {
        if case .http2(let handler)? = protocolHandler { handler.hasSettings } else { false }
    }

    /// True if the connection broke, was closed or abandoned, or cannot be used again.
    var isUnusable: Bool {
        if isAbandoned { return true }
        return switch protocolHandler {
        case .http1(let handler): handler.isUnusable
        case .http2(let handler): handler.isUnusable
        case nil: false
        }
    }

    /// Starts reading on an idle connection, so that its end is noticed.
    func markIdle() {
        if case .http1(let handler)? = protocolHandler { handler.deliverPending() }
    }

    /// Records that the channel is closed.
    func channelClosed() {
        isAbandoned = true
        protocolHandler = nil
        channel = nil
    }

    /// Closes the connection, whatever its state; a transaction that opens it, or uses it over
    /// HTTP/1.1, is not notified.
    func close() {
        isAbandoned = true
        transaction = nil
        if case .http1(let handler)? = protocolHandler { handler.abandon() }
        channel?.close(promise: nil)
    }
}

/// The transport of one request and its response: an HTTP/1.1 connection or an HTTP/2 stream.
///
/// A transport reports to its transaction through
/// ``OriginTransaction/responseEventReceived(_:isReusable:)`` and related methods, and holds
/// received data while the transaction is paused.
protocol OriginTransport: AnyObject {
    /// Writes a request with the part of its body that is available, and starts to receive the
    /// response.
    func send(_ request: OriginFetchRequest, _ body: OutgoingBodyPart)
    /// Writes more of the request's body; the transaction is notified when it is written.
    func write(_ body: OutgoingBodyPart)
    /// False while many written bytes are pending, or if there is nothing to write to.
    var isWritable: Bool { get }
    /// True if no written byte is pending.
    var isFlushed: Bool { get }
    /// Delivers held data while the transaction accepts it, then further data as it arrives.
    func deliverPending()
    /// Reports that the transaction gives up because the origin sent nothing for too long; an
    /// HTTP/2 connection that looks dead then accepts no further request.
    func responseTimedOut()
    /// Ends the transaction's use of the transport.
    ///
    /// With `closing`, the HTTP/1.1 connection is closed or the stream reset; otherwise the request
    /// and the response are complete, and the connection may be reused.
    func release(closing: Bool)
}
