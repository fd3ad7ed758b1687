import Cluster
import Ground
import NIOCore
import Telemetry

/// An answer that a peer holds: its head, and what came of its body in the same turn of the loop,
/// which of small ones is all.
struct GivenAnswer {
    let entry: HeldEntry
    var body: [ByteBuffer] = []
    /// Nil if more is to come.
    var end: StreamEnd?
}

/// Who has put a question to a peer; it is told what comes of it on the loop of its hall.
protocol PeerAskDelegate: AnyObject {
    func heard(_ event: PeerAsk.Event, of ask: PeerAsk)
}

/// One question to a peer: between the loop of the fetch that asks and that of the connection.
final class PeerAsk: @unchecked Sendable {
    /// What comes of it, in this order.
    enum Event {
        /// Any answer but one that the peer holds.
        case answered(PeerAnswer)
        case held(GivenAnswer)
        /// What comes of its body later.
        case data(ByteBuffer)
        /// The body was whole.
        case ended(StreamEnd)
        /// There is no whole answer.
        case lost
        /// This side has no room for the question; of the peer it says nothing.
        case refused
    }

    let node: NodeID
    let question: PeerQuestion
    let connection: PeerConnection
    /// Not later than it was put.
    let madeAt = SystemClock.now()
    private let hall: Hall
    /// On the fetch's loop; nil once nothing of it is wanted.
    private weak var fetch: (any PeerAskDelegate)?
    /// On the connection's loop: where the answer comes; nil before it is asked and after its end.
    var stream: UInt32?
    /// On the connection's loop: the peer holds it, and its body is on the way.
    var hasHead = false
    /// On the connection's loop: what has come of it in this turn, before the fetch is told.
    var arriving: GivenAnswer?
    /// On the connection's loop: when it was put.
    var askedAt = Instant.zero

    init(
        _ node: NodeID, _ question: PeerQuestion, on connection: PeerConnection,
        for fetch: any PeerAskDelegate, of hall: Hall
    ) {
        self.node = node
        self.question = question
        self.connection = connection
        self.fetch = fetch
        self.hall = hall
    }

    /// Told on the connection's loop.
    func tell(_ event: Event) {
        guard !hall.loop.inEventLoop else { return hear(event) }
        hall.loop.execute { [self] in hear(event) }
    }

    private func hear(_ event: Event) {
        guard let fetch else { return }
        if case .lost = event { hall.counters.add(.peerQuestionsLost) }
        fetch.heard(event, of: self)
    }

    /// Tells what has come of the answer so far; what comes then is told of as it comes.
    func tellArrived() {
        if let answer = arriving.take() { tell(.held(answer)) }
    }

    /// Nothing more of it is wanted; on the fetch's loop.
    func cancel() {
        fetch = nil
        connection.cancel(self)
    }
}
