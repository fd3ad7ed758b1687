import Cluster
import Ground
import HTTPRules
import NIOCore
import Peering
import Platform
import Serving
import Store
import Telemetry
import Wire

extension PeerRequestHandler {
    // MARK: Fetches

    /// Joins a fetch or starts one; a probe joins only fetches from an origin and starts only
    /// look-ups on disk.
    ///
    /// - Parameters:
    ///   - query: the request that the peer's query stands for.
    ///   - stale: the stale entry in memory; `nil` for none.
    ///   - glance: the outcome of the immediate look-up on disk.
    func joinOrStartFetch(
        _ query: SiteRequest, stale: MemoryEntry?, _ glance: ImmediateDiskLookup
    ) {
        let isProbe = self.query.kind == .probe
        var asksDisk = false
        if case .needsSlowPath = glance { asksDisk = true }
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
            run.context.fetches.perform(on: run) { $0.peerJoined() }
            attach(run, reader)
        case .started(let run, let reader):
            logSummary.part = stale == nil ? .miss : .revalidated
            let driver = LookupDriver(run, name: name, on: context)
            context.fetches.start(driver, readsDisk: asksDisk)
            driver.peerHandler = self
            attach(run, reader)
        }
    }

    /// Makes the query a reader of a fetch and waits for its head; unless it probes the disk, the
    /// peer is told periodically that the response is being fetched.
    private func attach(_ run: ActiveFetch, _ reader: Fetch.ReaderID) {
        context.node.waiterJoined()
        stage = .awaitingHead(run, reader)
        proceed()
        // The disk look-up of a probe waits for no origin.
        guard case .awaitingHead = stage, !run.options.isProbe else { return }
        sendFetching()
    }

    /// Sends, now and periodically, that the response is being fetched.
    private func sendFetching() {
        guard case .awaitingHead = stage else { return }
        send(.fetching)
        connection.flush()
        let time = TimeAmount.nanoseconds(PeerReply.fetchingRepeatInterval.nanoseconds)
        timer = context.loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            self?.sendFetching()
        }
    }

    /// Continues after progress of the fetch; see ``FetchReader``.
    func fetchAdvanced(by run: ActiveFetch) {
        proceed()
        connection.scheduleFlush()
    }

    /// Continues with the current stage.
    func proceed() {
        switch stage {
        case .awaitingHead(let run, let reader): awaitHead(run, reader)
        case .streamingFetch(let run, let reader, let lent) where lent == 0: proceed(run, reader)
        case .starting, .streamingFetch, .sendingEntry, .finished: break
        }
    }

    /// Replies as the head of the fetch requires, or waits for it.
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
        case .pending: context.fetches.addReader(self, of: run)
        case .failed: send(failureReply(view.progress.outcome))
        case .loadedFromDisk(let memoryEntry):
            // A stale response that the requesting client gets is not sent to a peer.
            let reuse = siteRequest?.reuse(memoryEntry.metadata, now: SystemClock.now())
            guard reuse == .fresh else { return restart() }
            detach()
            sendEntry(memoryEntry, from: .disk)
        case .stored(let memoryEntry):
            guard var terms = terms(of: view) else { return send(declineReply(.unshareable)) }
            if causedFetch, let own = view.progress.requesterResponse {
                return streamFetch(run, reader, own, &terms)
            }
            if causedFetch, var own = FetchedResponse(trailing: memoryEntry, view.progress) {
                // With a length, no trailers could follow the body (RFC 9112 §6.3).
                own.head = own.head.unframed
                return streamFetch(run, reader, own, terms)
            }
            detach()
            sendEntry(memoryEntry, from: .fetch, terms)
        case .receiving(let fetch) where run.siteRequest.isImage && fetch.head.status != 200:
            // This node stores that the image is missing, and the peer need not.
            send(failureReply(of: .originStatus(fetch.head.status)))
        // A partial or not-modified response is never sent to a peer.
        case .receiving(let fetch) where [206, 304].contains(fetch.head.status):
            send(declineReply(.unshareable))
        case .receiving(let fetch):
            guard var terms = terms(of: view) else { return send(declineReply(.unshareable)) }
            if causedFetch, let own = view.progress.requesterResponse {
                return streamFetch(run, reader, own, &terms)
            }
            streamFetch(run, reader, fetch, terms)
        }
    }

    /// Streams the response with the fields that are only for the requester that caused the fetch;
    /// no node stores it.
    private func streamFetch(
        _ run: ActiveFetch, _ reader: Fetch.ReaderID, _ own: FetchedResponse,
        _ terms: inout PeerEntry.Terms
    ) {
        terms.restrictions.formUnion([.isPrivate, .isNoStore, .hasPrivateFields])
        streamFetch(run, reader, own, terms)
    }

    /// Streams the body as it arrives.
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

    /// Sends the next part of the fetch's body, or its end.
    func proceed(_ run: ActiveFetch, _ reader: Fetch.ReaderID) {
        var taken: [ByteBuffer] = []
        switch run.nextStep(
            reader, limit: context.settings.transferBytesMax, on: context, slices: &taken)
        {
        case .wait: context.fetches.addReader(self, of: run)
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

    /// Starts again, because the awaited response does not match this query; declines after
    /// ``restartsMax`` restarts.
    private func restart() {
        detach()
        guard restartCount < Self.restartsMax else { return send(declineReply(.overloaded)) }
        restartCount += 1
        start()
    }

    /// Maximum number of times that a query starts again.
    private static let restartsMax = 3
}

/// Interpretation of a query.
extension PeerRequestHandler {
    /// The outcome of interpreting a query.
    enum Resolution {
        case siteRequest(SiteRequest)
        case declined(DeclineReason)
    }

    /// The negotiation of an image's request; `nil` for others.
    var selection: Negotiation? {
        query.key.first == UInt8(ascii: "h") ? query.negotiation : nil
    }

    /// Returns a function that looks up a fresh entry in memory.
    func freshEntryLookup(_ query: SiteRequest) -> () -> MemoryEntry? {
        { [context] in
            guard
                case .found(let found, .fresh) = query.find(
                    in: context.store, now: SystemClock.now())
            else { return nil }
            return found
        }
    }

    /// Returns the request that the query stands for, or the reason for declining it.
    func resolveRequest() -> Resolution {
        let key = query.key
        let hash = context.store.hash(of: key)
        let isImage = key.first != UInt8(ascii: "/")
        let relayed = isImage ? nil : RelayedRequest(query.request)
        let isKey = !isImage || CacheKey.isKey(key, bytesMax: context.settings.urlBytesMax)
        guard isKey, isImage || relayed != nil else { return .declined(.notUnderstood) }
        guard let plan = context.settings.sharedPolicy(ofKey: key),
            plan.digest == RelayedRequest.policy(of: query.request)
        else {
            context.counters.add(.peerPoliciesDiffer)
            return .declined(.otherPolicy)
        }
        guard let relayed else {
            return .siteRequest(
                SiteRequest(image: key, hash: hash, query.negotiation, on: context))
        }
        // The request must be for the URL of the key, and for nothing else of the origin.
        let start = RequestForwarder.requestLineAndHost(
            ofKey: key, isSecure: relayed.flags.contains(.isSecure), rules: plan.requestFieldRules)
        guard let start, relayed.head.starts(with: start) else { return .declined(.notUnderstood) }
        let query = SiteRequest(relayed, key: key, hash: hash, by: plan, on: context)
        // The request has passed through this node before, on its way through an origin.
        return query.isLoop(at: context.node) ? .declined(.notAllowed) : .siteRequest(query)
    }
}

/// The terms of responses, and the replies in place of a response.
extension PeerRequestHandler {
    /// Returns the terms of a fetched response; `nil` if it must not be sent to this peer.
    private func terms(of view: FetchSnapshot) -> PeerEntry.Terms? {
        PeerEntry.Terms(of: view, forInitiator: causedFetch, isProbe: query.kind == .probe)
    }

    /// True if this query has caused the fetch that it waits for.
    var causedFetch: Bool { logSummary.part == .miss || logSummary.part == .revalidated }

    // MARK: Replies without a response

    /// Returns the reply for a fetch without a response: its failure, or a decline if the outcome
    /// is none.
    func failureReply(_ outcome: FetchSnapshot.Outcome) -> PeerReply {
        guard case .failed(let problem) = outcome else { return declineReply(.overloaded) }
        return failureReply(of: problem)
    }

    /// Returns the reply for a problem; `absent` for a probe.
    func failureReply(of problem: Problem) -> PeerReply {
        query.kind == .probe
            ? .absent
            : .originFailed(
                PeerOriginFailure(
                    status: problem.originStatus ?? 0, cause: .answer, mayServeStale: true,
                    text: problem.document.detail))
    }

    /// Returns the reply for declining the query; `absent` for a probe.
    func declineReply(_ reason: DeclineReason) -> PeerReply {
        query.kind == .probe ? .absent : .declined(reason)
    }

    // MARK: Interim responses

    /// Relays an interim response if this query waits for `run`.
    func relay(interim head: [UInt8], for run: ActiveFetch) {
        guard case .awaitingHead(let waited, _) = stage, waited === run else { return }
        send(.interim(head))
        connection.scheduleFlush()
    }
}
