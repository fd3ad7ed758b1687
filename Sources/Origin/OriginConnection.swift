import Ground
import NIOCore

/// One connection to an origin, as the client, its pool and the gate count it, whatever is spoken
/// on it.
final class OriginConnection {
    /// What is spoken on a connection that is open.
    enum Speaker {
        case http1(OriginHTTP1)
        case http2(OriginHTTP2)
    }

    let id: ConnectionID
    let origin: OriginAuthority
    /// Under which rules of the client it was opened.
    let generation: Int
    private(set) weak var client: OriginClient?
    /// Where it leads; nil if only a proxy knows.
    var address: IPAddress?
    /// Whose attempt it is; nil once it is used or given up.
    var hop: OriginHop?
    /// Only HTTP/1.1 will do for whoever opens it.
    var isForUpgrade: Bool { hop?.request.upgrade.isEmpty == false }
    /// Number of the hop that opened it, while others wait to hear how many requests the origin
    /// allows on it at once.
    var opener: UInt64?
    /// To the origin, or to a proxy while a tunnel is asked for.
    private var channel: (any Channel)?
    private(set) var speaker: Speaker?
    /// It is counted as idle by the gate.
    var isIdle = false
    /// The gate has asked for its place.
    var isAskedFor = false
    private(set) var isGivenUp = false

    init(id: ConnectionID, origin: OriginAuthority, generation: Int, client: OriginClient) {
        self.id = id
        self.origin = origin
        self.generation = generation
        self.client = client
    }

    /// A channel is being connected for it, in place of any before.
    func begins(_ channel: any Channel) {
        self.channel = channel
        if isGivenUp { channel.close(promise: nil) }
    }

    /// It is open, and `speaker` is what is spoken on it.
    func speaks(_ speaker: Speaker) throws {
        self.speaker = speaker
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
    func carry(_ hop: OriginHop) -> any OriginCarrier {
        self.hop = nil
        switch speaker {
        case .http1(let handler):
            handler.hop = hop
            return handler
        case .http2(let handler): return handler.open(for: hop)
        case nil: preconditionFailure("connection \(id) to \(origin) is used before it is open")
        }
    }

    /// Several fetches may use it at one time.
    var isShared: Bool {
        if case .http2? = speaker { true } else { false }
    }

    /// Fetches that it can carry beside those that it carries; 0 unless it is shared.
    var room: Int {
        if case .http2(let handler)? = speaker, !isGivenUp { handler.room } else { 0 }
    }

    /// True once the origin has said how many requests it allows at once; never on HTTP/1.1.
    var hasSettings: Bool {
        if case .http2(let handler)? = speaker { handler.hasSettings } else { false }
    }

    /// True if the connection broke, was closed or given up, or cannot be used again.
    var isOver: Bool {
        if isGivenUp { return true }
        return switch speaker {
        case .http1(let handler): handler.isOver
        case .http2(let handler): handler.isOver
        case nil: false
        }
    }

    /// Waits without a fetch.
    func becomeIdle() {
        if case .http1(let handler)? = speaker { handler.advance() }
    }

    /// Its channel is closed.
    func ended() {
        isGivenUp = true
        speaker = nil
        channel = nil
    }

    /// Nothing more is wanted of the connection, whatever state it is in.
    func close() {
        isGivenUp = true
        hop = nil
        if case .http1(let handler)? = speaker { handler.giveUp() }
        channel?.close(promise: nil)
    }
}
