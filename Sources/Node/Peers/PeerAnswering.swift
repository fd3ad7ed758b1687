import Cluster
import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

/// The answer to one question of a peer, from memory, from disk, or from a fetch that it joins or
/// causes; never by asking another node what that one would ask this one.
///
/// Confined to the loop of its connection.
final class PeerRequestHandler: FetchReader {
    let connection: PeerConnection
    private let stream: UInt32
    let query: PeerQuery
    let context: EventLoopContext
    /// For whose sake the peer asks.
    let cause: RequestCorrelation
    var logSummary = LogSummary()
    private(set) var stage = Stage.starting
    /// Bytes of the body that were announced and are not sent.
    private var slices: [ByteBuffer] = []
    private var timer: Scheduled<Void>?
    private var restartCount = 0
    /// What it stands for; nil before it is looked into, and of what was offered.
    private var siteRequest: SiteRequest?

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

    // MARK: A fetch

    private func joinOrStartFetch(
        _ query: SiteRequest, stale: MemoryEntry?, _ glance: ImmediateDiskLookup
    ) {
        let isProbe = self.query.kind == .probe
        var asksDisk = false
        if case .wouldBlock = glance { asksDisk = true }
        if isProbe {
            let joined = context.node.fetches.join(query, matching: \.isFetchingFromOrigin)
            if let (run, reader) = joined { return attach(run, reader) }
            guard asksDisk else { return send(.absent) }
        }
        guard context.node.waiterCount < context.settings.waitersMax else {
            return send(isProbe ? .absent : .declined(.overloaded))
        }
        let name = EntryName(ofKey: query.key)
        var wish = Lookup.Options()
        wish.isExclusive = isProbe
        wish.isProbe = isProbe
        wish.isForPeer = true
        let begin = { [context, cause] in
            ActiveFetch(
                query, stale: stale, on: context, cause: cause, client: query.relayed?.quotaHolder,
                expected: query.expected(in: context.store), wish: wish)
        }
        let fetches = context.node.fetches
        let admission: FetchTable.Admission
        if isProbe {
            let (run, reader) = fetches.startExclusive(query, start: begin)
            admission = .started(run, reader)
        } else {
            admission = fetches.admit(query, lookUp: freshEntryLookup(query), start: begin)
        }
        switch admission {
        case .stored(let memoryEntry): sendEntry(memoryEntry, from: .memory)
        case .joined(let run, let reader):
            logSummary.part = .collapsed
            run.context.withFetch(run) { $0.peerJoined() }
            attach(run, reader)
        case .started(let run, let reader):
            logSummary.part = stale == nil ? .miss : .revalidated
            context.startFetch(run, name: name, asksDisk: asksDisk, for: nil).peerHandler = self
            attach(run, reader)
        }
    }

    private func attach(_ run: ActiveFetch, _ reader: Fetch.ReaderID) {
        context.node.waiterJoined()
        stage = .awaitingHead(run, reader)
        proceed()
        // Who looks on disk for a probe waits for no origin.
        guard case .awaitingHead = stage, !run.options.isProbe else { return }
        sendFetching()
    }

    /// Says that it is being fetched, now and again and again.
    private func sendFetching() {
        guard case .awaitingHead = stage else { return }
        send(.fetching)
        connection.flush()
        let time = TimeAmount.nanoseconds(PeerReply.fetchingRepeatInterval.nanoseconds)
        timer = context.loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            self?.sendFetching()
        }
    }

    func fetchAdvanced(by run: ActiveFetch) {
        proceed()
        connection.scheduleFlush()
    }

    private func proceed() {
        switch stage {
        case .awaitingHead(let run, let reader): awaitHead(run, reader)
        case .streamingFetch(let run, let reader, let lent) where lent == 0: proceed(run, reader)
        case .starting, .streamingFetch, .sendingEntry, .finished: break
        }
    }

    private func awaitHead(_ run: ActiveFetch, _ reader: Fetch.ReaderID) {
        let (step, view) = run.nextHeadStep(reader, on: context)
        switch step {
        case .restart(let alone):
            return alone && !view.progress.isRequesterSpecific
                ? send(declineReply(.unshareable)) : restart()
        case .fail, .abort: return send(failureReply(view.progress.outcome))
        case .wait, .read, .finish: break
        }
        switch view.progress.outcome {
        case .pending: context.addReader(run, for: self)
        case .failed: send(failureReply(view.progress.outcome))
        case .loadedFromDisk(let memoryEntry):
            // What the client is given who caused the fetch, and is stale, is no answer to a peer.
            let reuse = siteRequest?.reuse(memoryEntry.metadata, now: SystemClock.now())
            guard reuse == .fresh else { return restart() }
            detach()
            sendEntry(memoryEntry, from: .disk)
        case .stored(let memoryEntry):
            guard var terms = terms(view) else { return send(declineReply(.unshareable)) }
            if causedFetch, let own = view.progress.requesterResponse {
                return streamFetch(run, reader, own, &terms)
            }
            if causedFetch, !view.progress.trailers.isEmpty {
                // With a length nothing could follow the body (RFC 9112 §6.3).
                let response = FetchedResponse(
                    metadata: memoryEntry.metadata, head: RenderedHead(memoryEntry).unframed,
                    sizeBytes: nil, isKept: true, tags: memoryEntry.tags)
                return streamFetch(run, reader, response, terms)
            }
            detach()
            sendEntry(memoryEntry, from: .fetch, terms)
        case .receiving(let fetch) where run.siteRequest.isImage && fetch.head.status != 200:
            send(absenceReply(fetch.head.status))
        // No member may give what is a part of something, or of nothing.
        case .receiving(let fetch) where [206, 304].contains(fetch.head.status):
            send(declineReply(.unshareable))
        case .receiving(let fetch):
            guard var terms = terms(view) else { return send(declineReply(.unshareable)) }
            if causedFetch, let own = view.progress.requesterResponse {
                return streamFetch(run, reader, own, &terms)
            }
            streamFetch(run, reader, fetch, terms)
        }
    }

    /// The same with those fields that are for the one who caused it, and are stored by nobody.
    private func streamFetch(
        _ run: ActiveFetch, _ reader: Fetch.ReaderID, _ own: FetchedResponse,
        _ terms: inout PeerEntry.Terms
    ) {
        terms.restrictions.formUnion([.isPrivate, .isNoStore, .hasPrivateFields])
        streamFetch(run, reader, own, terms)
    }

    /// The body goes out as it comes.
    private func streamFetch(
        _ run: ActiveFetch, _ reader: Fetch.ReaderID, _ fetch: FetchedResponse,
        _ terms: PeerEntry.Terms
    ) {
        var entry = PeerEntry(
            fetch.metadata, size: fetch.sizeBytes, fetch.head, tags: fetch.tags,
            from: fetch.isFromDisk ? .disk : .fetch, version: run.invalidationVersion,
            selection: selection)
        entry.terms = terms
        guard sendEntryHead(entry) else { return }
        if fetch.isFromDisk { logSummary.part = .disk }
        stage = .streamingFetch(run, reader, lentBytes: 0)
        timer?.cancel()
        proceed(run, reader)
    }

    private func proceed(_ run: ActiveFetch, _ reader: Fetch.ReaderID) {
        var taken: [ByteBuffer] = []
        switch run.nextStep(
            reader, limit: context.settings.transferBytesMax, on: context, slices: &taken)
        {
        case .wait: context.addReader(run, for: self)
        case .read(_, let count):
            stage = .streamingFetch(run, reader, lentBytes: count)
            slices.append(contentsOf: taken)
            connection.link.addBodyBytes(count, on: stream)
        case .finish:
            let trailers = causedFetch ? run.snapshot.progress.trailers : []
            connection.link.completeBody(on: stream, trailers: trailers)
            end()
        case .restart, .abort, .fail:
            connection.link.reset(stream, .incompleteBody)
            end(isComplete: false)
        }
    }

    /// What was waited for is not for this question: something else may be, or is fetched.
    private func restart() {
        detach()
        guard restartCount < Self.restartsMax else { return send(declineReply(.overloaded)) }
        restartCount += 1
        start()
    }

    /// Fetches in a row that a question may wait for in vain.
    private static let restartsMax = 3

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
    private func sendEntryHead(_ entry: PeerEntry) -> Bool {
        do throws(SendError) {
            try connection.link.sendReply(.held(entry), on: stream)
            logSummary.status = entry.status
            return true
        } catch {
            send(declineReply(error == .tooLong(.payload) ? .tooLarge : .overloaded))
            return false
        }
    }

    private func end(isComplete: Bool = true) {
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

    private func detach() {
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
