import Cluster
import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Peering
import Platform
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// Handler of one query of a peer: it responds from memory, from disk, or from a fetch that it
/// joins or starts, but never queries a node that would in turn query this one.
///
/// Confined to the loop of its connection.
final class PeerRequestHandler: FetchReader, PeerQueryHandler {
    /// The connection that the query came on.
    let connection: PeerConnection
    /// The stream of the reply.
    let stream: UInt32
    /// The query.
    let query: PeerQuery
    /// The context of the connection's loop.
    let context: EventLoopContext
    /// The correlation with the client's request that the peer serves.
    let cause: RequestCorrelation
    /// The facts for the access log.
    var logSummary = PeerQuerySummary()
    /// The stage of the reply.
    var stage = Stage.starting
    /// The body bytes that are announced and not sent yet.
    var slices: [ByteBuffer] = []
    /// The timer of the current stage.
    var timer: Scheduled<Void>?
    /// The number of restarts.
    var restartCount = 0
    /// The request that the query stands for; `nil` before it is interpreted, and for offered
    /// entries.
    var siteRequest: SiteRequest?

    /// The stage of a reply.
    enum Stage {
        case starting
        /// The head of the fetched response is unknown.
        case awaitingHead(ActiveFetch, Fetch.ReaderID)
        /// The body comes from the fetch; `lentBytes` of it are announced and still held there.
        case streamingFetch(ActiveFetch, Fetch.ReaderID, lentBytes: Int)
        /// The body comes from an entry and is announced in full; it is sent from `offset` on.
        case sendingEntry(MemoryEntry, offset: UInt64)
        case finished
    }

    /// Creates a handler of a query.
    ///
    /// - Parameters:
    ///   - question: the query.
    ///   - stream: the stream of the reply.
    ///   - connection: the connection that the query came on.
    ///   - context: the context of the connection's loop.
    init(
        _ question: PeerQuery, on stream: UInt32, of connection: PeerConnection,
        in context: EventLoopContext
    ) {
        self.query = question
        self.stream = stream
        self.connection = connection
        self.context = context
        cause = RequestCorrelation(question.trace, fallbackNames: &context.requestIDs)
    }

    /// Interprets the query, then replies from memory or the page cache, or joins or starts a
    /// fetch.
    func start() {
        context.counters.add(self.query.kind == .get ? .peerGetsReceived : .peerProbesReceived)
        guard !query.key.isEmpty else { return startOffered() }
        let query: SiteRequest
        switch resolveRequest() {
        case .declined(let reason): return send(declineReply(reason))
        case .siteRequest(let made): query = made
        }
        let (store, now) = (context.store, SystemClock.now())
        self.siteRequest = query
        var stale: MemoryEntry?
        switch query.find(in: store, now: now) {
        case .found(let found, .fresh):
            context.touch(found, now: now)
            return sendEntry(found, from: .memory)
        case .found(let found, _): stale = found
        case .hitForMiss: return send(declineReply(.unshareable))
        case .miss: break
        }
        let glance = stale == nil ? context.pageCache.lookUp(query) : .disabled
        if case .hit(let memoryEntry) = glance {
            context.touch(memoryEntry, now: now)
            return sendEntry(memoryEntry, from: .disk)
        }
        joinOrStartFetch(query, stale: stale, glance)
    }

    /// Starts once this node has the invalidations that `peer` has reported; replies with `behind`
    /// if that takes too long.
    func startWhenCaughtUp(with peer: NodeID) {
        let time = TimeAmount.nanoseconds(Self.catchUpTimeout.nanoseconds)
        timer = context.loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            guard let self, case .starting = stage else { return }
            send(.behind)
            connection.flush()
        }
        // Used only on the loop, but captured by a closure of another thread.
        nonisolated(unsafe) weak let answering = self
        context.purges.whenCaughtUp(with: peer, within: Self.catchUpTimeout) {
            [loop = context.loop] in
            loop.execute {
                guard let answering = unsafe answering, case .starting = answering.stage,
                    answering.timer != nil
                else { return }
                answering.timer?.cancel()
                answering.timer = nil
                answering.start()
                answering.connection.flush()
            }
        }
    }

    /// Maximum time before a lagging node replies, if only with `behind` (Design, "Queries carry
    /// knowledge").
    private static let catchUpTimeout = Interval.milliseconds(50)

    /// Ends the reply, because the peer has cancelled the query or its connection is closed.
    func cancelled() {
        log(isComplete: false)
        detach()
        stage = .finished
    }

    // MARK: Output

    /// Sends a reply; a final one ends the handler.
    func send(_ response: PeerReply) {
        try? connection.link.sendReply(response, on: stream)
        switch response {
        case .notModified: logSummary.status = 304
        case .originFailed(let failure):
            logSummary.status = failure.status == 0 ? 502 : failure.status
        default: break
        }
        if response.isFinal { end() }
    }

    /// Sends the head of an entry; returns false if that fails, after ending with a decline.
    func sendEntryHead(_ entry: PeerEntry) -> Bool {
        do throws(SendError) {
            try connection.link.sendReply(.held(entry), on: stream)
            logSummary.status = entry.status
            return true
        } catch {
            send(declineReply(error == .tooLong(.payload) ? .tooLarge : .overloaded))
            return false
        }
    }

    /// Ends the handler, with a line in the access log.
    func end(isComplete: Bool = true) {
        log(isComplete: isComplete)
        detach()
        stage = .finished
        connection.replyFinished(stream)
    }

    /// Sends an entry from memory, whose body is announced in full.
    ///
    /// If the query has its entity tag, the entry is only confirmed; the error status of an image
    /// is sent as a failure.
    func sendEntry(
        _ memoryEntry: MemoryEntry, from source: PeerEntry.Source,
        _ terms: PeerEntry.Terms = PeerEntry.Terms()
    ) {
        guard memoryEntry.status == 200 || !memoryEntry.isImage else {
            return send(failureReply(of: .originStatus(memoryEntry.status)))
        }
        switch source {
        case .memory: logSummary.part = .hit
        case .disk: logSummary.part = .disk
        default: break
        }
        let head = RenderedHead(memoryEntry)
        var entry = PeerEntry(
            memoryEntry.metadata, size: memoryEntry.metadata.size, head, tags: memoryEntry.tags,
            from: source, version: memoryEntry.version, selection: selection,
            key: query.key.isEmpty ? memoryEntry.key : [])
        entry.terms = terms
        if query.key.isEmpty {
            entry.policyDigest = context.settings.sharedPolicy(ofKey: entry.key)?.digest ?? 0
        }
        if !query.entityTag.isEmpty, query.entityTag == head.slice(head.entityTag) {
            return send(.notModified(entry))
        }
        guard sendEntryHead(entry) else { return }
        timer?.cancel()
        stage = .sendingEntry(memoryEntry, offset: 0)
        guard memoryEntry.metadata.size > 0 else { return finishEntry() }
        connection.link.addBodyBytes(Int(memoryEntry.metadata.size), on: stream)
    }

    /// Completes the body and ends the handler.
    private func finishEntry() {
        connection.link.completeBody(on: stream)
        end()
    }

    /// Appends the next `count` bytes of the announced body to `frames`.
    func writeBody(_ count: Int, into frames: inout [ByteBuffer]) {
        logSummary.bodyBytes += UInt64(count)
        switch stage {
        case .sendingEntry(let memoryEntry, let offset):
            memoryEntry.body.appendSlices(from: offset, count: count, to: &frames)
            stage = .sendingEntry(memoryEntry, offset: offset + UInt64(count))
            if offset + UInt64(count) == memoryEntry.metadata.size { finishEntry() }
        case .streamingFetch(let run, let reader, let lent):
            var left = count
            while left > 0, let slice = slices.first {
                if slice.readableBytes > left, let part = slices[0].readSlice(length: left) {
                    frames.append(part)
                    left = 0
                } else {
                    left -= slice.readableBytes
                    frames.append(slices.removeFirst())
                }
            }
            guard slices.isEmpty else { return }
            run.advance(reader, by: lent)
            stage = .streamingFetch(run, reader, lentBytes: 0)
            proceed(run, reader)
        case .starting, .awaitingHead, .finished: preconditionFailure("no body to send")
        }
    }

    /// Leaves the fetch and cancels the timer.
    func detach() {
        timer?.cancel()
        switch stage {
        case .awaitingHead(let run, let reader), .streamingFetch(let run, let reader, _):
            context.node.waiterLeft()
            run.leave(reader)
            stage = .starting
        case .starting, .sendingEntry, .finished: break
        }
        slices.removeAll()
    }
}

/// The facts of a peer query's line in the access log.
struct PeerQuerySummary {
    /// The time at which the query arrived.
    let startedAt = SystemClock.now()
    /// The part of this node's cache in the response.
    var part = CacheOutcome.generated
    /// The status of the response; 0 while there is none, and for a reply that is not an HTTP
    /// response.
    var status: UInt16 = 0
    /// The body bytes sent so far.
    var bodyBytes: UInt64 = 0
}

/// The access log of peers' queries.
extension PeerRequestHandler {
    /// Writes the log line of a query that may have caused a fetch here; probes have none.
    func log(isComplete: Bool) {
        guard context.hasAccessLog, query.kind == .get else { return }
        let request = LoggedRequest(
            on: .peer, as: cause.id, trace: cause.trace, method: Array("GET".utf8),
            target: query.key, version: "-", startedAt: logSummary.startedAt)
        context.log(
            AccessLine(
                request, remote: connection.remote,
                milliseconds: SystemClock.wallMilliseconds(), status: logSummary.status,
                bodyBytes: logSummary.bodyBytes, outcome: logSummary.part.logText,
                isComplete: isComplete,
                duration: SystemClock.now() - request.startedAt))
    }
}

/// Queries for offered entries, which contain only the digest of the name.
extension PeerRequestHandler {
    /// Looks up an offered entry in memory, if it was offered from there, and on disk, and sends
    /// it.
    func startOffered() {
        guard query.kind == .probe else { return send(.declined(.notUnderstood)) }
        let digest = query.name.digest
        if let key = connection.hub.offeredKeys.find(digest),
            let found = context.store.find(key, hash: context.store.hash(of: key)),
            context.settings.sharesWithPeers(found)
        {
            return sendEntry(found, from: .memory)
        }
        guard let disk = context.node.disk else { return send(.absent) }
        guard let view = disk.view else { return send(.declined(.overloaded)) }
        let (store, clock, settings) = (context.store, disk.clock, context.settings)
        let promoted = disk.readerThreads.runIfActive(eventLoop: context.loop) {
            () -> MemoryStore.Promotion? in
            guard var reading = view.read(digest: digest),
                reading.metadata(clock).flags.isResponse,
                settings.sharedPolicy(ofKey: reading.record.key) != nil
            else { return nil }
            let hash = store.hash(of: reading.record.key)
            return store.promote(
                &reading, hash: hash, clock: clock, read: { view.readBody(&$0) })
        }
        promoted.assumeIsolated().whenComplete { [self] result in
            guard case .starting = stage else { return }
            switch result {
            case .success(.promoted(let entry)): sendEntry(entry, from: .disk)
            case .success(nil), .success(.unreadable): send(.absent)
            // The entry exists, but cannot be loaded now.
            case .success(.noCapacity), .failure: send(.declined(.overloaded))
            }
            connection.flush()
        }
    }
}
