import Cluster
import Ground
import NIOCore
import Telemetry

/// An answer that a peer holds: its head, and what came of its body in the same turn of the loop,
/// which of small ones is all.
struct ReceivedEntry {
    let entry: PeerEntry
    var body: [ByteBuffer] = []
    /// Nil if more is to come.
    var end: StreamEnd?
}

/// Who has put a question to a peer; it is told what comes of it on the loop of its hall.
protocol PeerRequestDelegate: AnyObject {
    func eventReceived(_ event: PeerRequest.Event, for ask: PeerRequest)
}

/// One question to a peer: between the loop of the fetch that asks and that of the connection.
final class PeerRequest: @unchecked Sendable {
    /// What comes of it, in this order.
    enum Event {
        /// Any answer but one that the peer holds.
        case replyReceived(PeerReply)
        case entryReceived(ReceivedEntry)
        /// What comes of its body later.
        case dataReceived(ByteBuffer)
        /// The body was whole.
        case bodyEnded(StreamEnd)
        /// There is no whole answer.
        case failed
        /// This side has no room for the question; of the peer it says nothing.
        case notSent
    }

    let node: NodeID
    let query: PeerQuery
    let connection: PeerConnection
    /// Not later than it was put.
    let createdAt = SystemClock.now()
    private let context: EventLoopContext
    /// On the fetch's loop; nil once nothing of it is wanted.
    private weak var delegate: (any PeerRequestDelegate)?
    /// On the connection's loop: where the answer comes; nil before it is asked and after its end.
    var stream: UInt32?
    /// On the connection's loop: the peer holds it, and its body is on the way.
    var hasEntryHead = false
    /// On the connection's loop: what has come of it in this turn, before the fetch is told.
    var receivedEntry: ReceivedEntry?
    /// On the connection's loop: when it was put.
    var sentAt = Instant.zero

    init(
        _ node: NodeID, _ question: PeerQuery, on connection: PeerConnection,
        for fetch: any PeerRequestDelegate, of context: EventLoopContext
    ) {
        self.node = node
        self.query = question
        self.connection = connection
        self.delegate = fetch
        self.context = context
    }

    /// Told on the connection's loop.
    func deliver(_ event: Event) {
        guard !context.loop.inEventLoop else { return notifyDelegate(event) }
        context.loop.execute { [self] in notifyDelegate(event) }
    }

    private func notifyDelegate(_ event: Event) {
        guard let delegate else { return }
        if case .failed = event { context.counters.add(.peerRequestsFailed) }
        delegate.eventReceived(event, for: self)
    }

    /// Tells what has come of the answer so far; what comes then is told of as it comes.
    func deliverReceivedEntry() {
        if let response = receivedEntry.take() { deliver(.entryReceived(response)) }
    }

    /// Nothing more of it is wanted; on the fetch's loop.
    func cancel() {
        delegate = nil
        connection.cancel(self)
    }
}
