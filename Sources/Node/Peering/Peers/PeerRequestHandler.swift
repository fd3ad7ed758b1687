import Cluster
import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// The answer to one question of a peer, from memory, from disk, or from a fetch that it joins or
/// causes; never by asking another node what that one would ask this one.
///
/// Confined to the loop of its connection.
final class PeerRequestHandler: FetchReader {
    let connection: PeerConnection
    let stream: UInt32
    let query: PeerQuery
    let context: EventLoopContext
    /// For whose sake the peer asks.
    let cause: RequestCorrelation
    var logSummary = LogSummary()
    var stage = Stage.starting
    /// Bytes of the body that were announced and are not sent.
    var slices: [ByteBuffer] = []
    var timer: Scheduled<Void>?
    var restartCount = 0
    /// What it stands for; nil before it is looked into, and of what was offered.
    var siteRequest: SiteRequest?

    enum Stage {
        case starting
        /// The head of the fetch's answer is not known.
        case awaitingHead(ActiveFetch, Fetch.ReaderID)
        /// The body comes from the fetch; so many bytes of it are announced and still held there.
        case streamingFetch(ActiveFetch, Fetch.ReaderID, lentBytes: Int)
        /// The body comes from an entry, which is announced whole; from here on it is not sent.
        case sendingEntry(MemoryEntry, offset: UInt64)
        case finished
    }

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

    /// Looks where the answer may be.
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
        let glance = stale == nil ? context.lookUpDiskImmediately(query) : .disabled
        if case .hit(let memoryEntry) = glance {
            context.touch(memoryEntry, now: now)
            return sendEntry(memoryEntry, from: .disk)
        }
        joinOrStartFetch(query, stale: stale, glance)
    }

    /// Looks where the answer may be once this node knows what `peer` has told of, or says that it
    /// does not.
    func startWhenCaughtUp(behind peer: NodeID) {
        let time = TimeAmount.nanoseconds(Self.catchUpTimeout.nanoseconds)
        timer = context.loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            guard let self, case .starting = stage else { return }
            send(.behind)
            connection.flush()
        }
        // Confined to the loop, and told on another thread.
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

    /// Within which a node that lags answers, be it that it does (DESIGN.md §7).
    private static let catchUpTimeout = Interval.milliseconds(50)

    /// The asker wants it no more, or is gone.
    func cancelled() {
        log(isComplete: false)
        detach()
        stage = .finished
    }

    // MARK: What goes

    /// Says it; if that is the last, all is over.
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

    /// Says that it is here; false if that cannot be said, and all is over.
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

    func end(isComplete: Bool = true) {
        log(isComplete: isComplete)
        detach()
        stage = .finished
        connection.replyFinished(stream)
    }

    func sendEntry(
        _ memoryEntry: MemoryEntry, from source: PeerEntry.Source,
        _ terms: PeerEntry.Terms = PeerEntry.Terms()
    ) {
        guard memoryEntry.status == 200 || !memoryEntry.isImage else {
            return send(absenceReply(memoryEntry.status))
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

    private func finishEntry() {
        connection.link.completeBody(on: stream)
        end()
    }

    /// The next `count` bytes of the body, which are being sent.
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

/// What the access log says of a question of a peer.
extension PeerRequestHandler {
    /// What became of a question, as far as it has.
    struct LogSummary {
        let startedAt = SystemClock.now()
        /// How the cache of this node takes part in the answer.
        var part = CacheResult.none
        /// 0 while there is no answer, and of one that is none of HTTP's.
        var status: UInt16 = 0
        var bodyBytes: UInt64 = 0
    }

    /// Writes the line of a question that may have caused a fetch here; what starts nothing has
    /// none.
    func log(isComplete: Bool) {
        guard context.hasAccessLog, query.kind == .get else { return }
        let request = LoggedRequest(
            on: .peer, as: cause.id, trace: cause.trace, method: Array("GET".utf8),
            target: query.key, version: "-", startedAt: logSummary.startedAt)
        context.log(
            AccessLine(
                request, remote: connection.remote,
                milliseconds: SystemClock.wallMilliseconds(), status: logSummary.status,
                bodyBytes: logSummary.bodyBytes, outcome: logSummary.part.text,
                isComplete: isComplete,
                duration: SystemClock.now() - request.startedAt))
    }
}

/// What this node has offered, and a peer asks for by half of its name.
extension PeerRequestHandler {
    /// Looks in memory if it was offered from there, then on disk.
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
            // It is here all the same.
            case .success(.noCapacity), .failure: send(.declined(.overloaded))
            }
            connection.flush()
        }
    }
}
