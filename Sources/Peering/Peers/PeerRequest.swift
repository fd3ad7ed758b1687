package import Cluster
package import Ground
package import NIOCore
import Platform
package import Telemetry

/// A peer's entry: its head and the body bytes of the same turn of the loop, which for a small
/// entry are all.
package struct ReceivedEntry {
    /// The description and head of the entry.
    package let entry: PeerEntry
    /// The body bytes so far.
    package var body: [ByteBuffer] = []
    /// The end of the body; `nil` if more is to come.
    package var end: StreamEnd?

    /// Creates an entry of which only the head has arrived.
    package init(entry: PeerEntry) { self.entry = entry }
}

/// The receiver of a query's events, on its event loop.
package protocol PeerRequestDelegate: AnyObject {
    /// Handles an event of the query `ask`; not called after a cancel.
    func eventReceived(_ event: PeerRequest.Event, for ask: PeerRequest)
}

/// A query to a peer, which connects the loop of the fetch with that of the connection.
package final class PeerRequest: @unchecked Sendable {
    /// An event of a query, in this order.
    package enum Event {
        /// A reply without an entry; the last event if the reply is final.
        case replyReceived(PeerReply)
        /// The head of an entry, with the first part of its body.
        case entryReceived(ReceivedEntry)
        /// A further part of the body.
        case dataReceived(ByteBuffer)
        /// The complete end of the body.
        case bodyEnded(StreamEnd)
        /// The query or its body has failed.
        case failed
        /// The query was not sent, because this node has no capacity for it; nothing is known of
        /// the peer.
        case notSent
    }

    /// The id of the peer.
    package let node: NodeID
    /// The query as it is encoded.
    package let query: PeerQuery
    /// The connection that the query is sent on.
    package let connection: PeerConnection
    /// The time of the query, not later than it was sent.
    package let createdAt = SystemClock.now()
    private let loop: any EventLoop
    private let counters: EventLoopCounters
    /// The receiver of events, used on the fetch's loop; `nil` once the query is cancelled or the
    /// receiver is gone.
    private weak var delegate: (any PeerRequestDelegate)?
    /// The stream of the query, used on the connection's loop; `nil` before the query is sent and
    /// after the reply has ended.
    fileprivate(set) var stream: UInt32?
    /// True once the peer has sent the entry's head; used on the connection's loop.
    fileprivate var hasEntryHead = false
    /// The entry received in this turn of the loop, before it is delivered; used on the
    /// connection's loop.
    fileprivate var receivedEntry: ReceivedEntry?
    /// The time at which the query was sent, zero before; used on the connection's loop.
    fileprivate(set) var sentAt = Instant.zero

    /// Creates a query for a fetch.
    ///
    /// - Parameters:
    ///   - node: the id of the peer.
    ///   - question: the query.
    ///   - connection: the connection with the peer.
    ///   - fetch: the receiver of events; held weakly.
    ///   - loop: the receiver's loop.
    ///   - counters: the counters of that loop.
    package init(
        _ node: NodeID, _ question: PeerQuery, on connection: PeerConnection,
        for fetch: any PeerRequestDelegate, on loop: any EventLoop,
        counters: EventLoopCounters
    ) {
        self.node = node
        self.query = question
        self.connection = connection
        self.delegate = fetch
        self.loop = loop
        self.counters = counters
    }

    /// Delivers an event on the receiver's loop; called on the connection's loop.
    func deliver(_ event: Event) {
        guard !loop.inEventLoop else { return notifyDelegate(event) }
        loop.execute { [self] in notifyDelegate(event) }
    }

    /// Calls the receiver, and counts a failure, unless the query was cancelled.
    private func notifyDelegate(_ event: Event) {
        guard let delegate else { return }
        if case .failed = event { counters.add(.peerRequestsFailed) }
        delegate.eventReceived(event, for: self)
    }

    /// Delivers the held entry, if any; later parts of its body are delivered as they arrive.
    fileprivate func deliverReceivedEntry() {
        if let response = receivedEntry.take() { deliver(.entryReceived(response)) }
    }

    /// Cancels the query, so that no further event is delivered; called on the receiver's loop.
    package func cancel() {
        delegate = nil
        connection.cancel(self)
    }
}

/// The open queries of this node on one connection.
///
/// Confined to the connection's loop. Receivers of events may cancel queries from inside.
final class PeerRequestTable {
    private var requests: [UInt32: PeerRequest] = [:]
    /// The queries whose entries began in this turn of the loop.
    private var receiving: [PeerRequest] = []

    /// Adds a query that was sent on `stream`.
    func add(_ request: PeerRequest, on stream: UInt32) {
        request.stream = stream
        request.sentAt = SystemClock.now()
        requests[stream] = request
    }

    /// Removes a cancelled query and returns its stream; `nil` if it is not open.
    func remove(_ request: PeerRequest) -> UInt32? {
        guard let stream = request.stream.take() else { return nil }
        request.receivedEntry = nil
        requests[stream] = nil
        return stream
    }

    /// Delivers a reply.
    ///
    /// An entry is held until the end of this turn of the loop: a body that has arrived by then is
    /// delivered with its head and its end, and costs the fetch one step.
    func replyReceived(_ reply: PeerReply, on stream: UInt32) {
        guard let request = requests[stream] else { return }
        if case .held(let entry) = reply {
            request.hasEntryHead = true
            request.receivedEntry = ReceivedEntry(entry: entry)
            receiving.append(request)
        } else if reply.isFinal {
            complete(request, .replyReceived(reply))
        } else {
            request.deliver(.replyReceived(reply))
        }
    }

    /// Delivers a part of an entry's body, or adds it to the entry while that is held.
    func bodyReceived(_ piece: ByteBuffer, on stream: UInt32) {
        guard let request = requests[stream] else { return }
        if request.receivedEntry?.body.append(piece) == nil {
            request.deliver(.dataReceived(piece))
        }
    }

    /// Delivers the end of an entry's body, with the entry while that is held.
    func bodyEnded(_ end: StreamEnd, on stream: UInt32) {
        guard let request = requests[stream] else { return }
        let isHeld = request.receivedEntry != nil
        request.receivedEntry?.end = end
        complete(request, isHeld ? nil : .bodyEnded(end))
    }

    /// Fails the query on a stream that was reset or lost.
    func streamFailed(_ stream: UInt32) {
        if let request = requests[stream] { complete(request, .failed) }
    }

    /// Fails the queries without an entry head, and calls `cancel` with the stream of each.
    func failWithoutHead(cancel: (UInt32) -> Void) {
        for stream in requests.keys.sorted() {
            guard let request = requests[stream], !request.hasEntryHead else { continue }
            complete(request, .failed)
            cancel(stream)
        }
    }

    /// Delivers the entries that began in this turn of the loop and have not ended.
    func deliverReceivedEntries() {
        for request in receiving { request.deliverReceivedEntry() }
        receiving.removeAll(keepingCapacity: true)
    }

    /// Closes a query: delivers the held entry, if any, and then `event`, which is `nil` if the
    /// held entry has the end of the body.
    private func complete(_ request: PeerRequest, _ event: PeerRequest.Event?) {
        if let stream = request.stream.take() { requests[stream] = nil }
        request.deliverReceivedEntry()
        if let event { request.deliver(event) }
    }
}
