import Ground
import HTTPRules
import Logging
import NIOCore
import Platform
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// Acceptance of an origin's final response with a body.
extension OriginSource {
    /// Decides by the site's rules whether a response is stored and served, and delivers it.
    ///
    /// - Parameters:
    ///   - head: the head of the origin's response.
    ///   - length: length of the body in bytes; `nil` if unknown.
    ///   - receipt: when the response was requested and received.
    func accept(_ head: ResponseHead, _ length: UInt64?, _ receipt: Freshness.ResponseTiming) {
        let plan = siteRequest.policy
        var examination = plan.evaluate(head, siteRequest, receipt)
        for redirect in redirects { plan.limit(&examination, by: redirect) }
        let redirected = head.restricted(by: redirects, examination)
        let vary = plan.varyNames(of: redirected)
        var acceptance = StorageDecision(
            examination, vary, status: head.status,
            before: driver.storedState(staleEntry, now: receipt.receivedAt))
        if let problem = plan.problem(of: head, examination) {
            if problem == .encodedImage { context.counters.add(.imagesCoded) }
            let absence = plan.negativeResponse(head, examination, receipt, by: redirects)
            if let staleEntry, absence != nil || acceptance.invalidatesStored {
                context.node.entries.remove(staleEntry)
            }
            if let absence, storeNegativeResponse(problem, absence, of: head, vary.names) {
                return discardResponse(length)
            }
            return discardResponse(problem, length, nominated: vary.names)
        }
        var place: EntryKey?
        var index: VariantIndex?
        if acceptance.isStorable {
            switch context.node.entries.location(
                siteRequest, selectedBy: vary.names, claimsIndex: true)
            {
            case .primary: break
            case .variant(let found, let names): (place, index) = (found, names)
            case .unstorable: acceptance.hasKey = false
            }
        }
        if let staleEntry, acceptance.invalidatesStored { context.node.entries.remove(staleEntry) }
        if shouldFetchPart(acceptance, head, length) { return switchToPart(length) }
        let response = AcceptedResponse(
            head: redirected, cacheability: examination, storageDecision: acceptance,
            nominated: vary.names, entryKey: place, variantIndex: index,
            tags: tags(of: head), timing: receipt)
        if plan.imageRules == nil {
            deliver(response, length)
        } else {
            holdUntilRecognised(HeldResponse(response: response, length: length))
        }
    }

    /// Stores a negative response, in memory only, for requests that agree in the fields `names`;
    /// they are sent `problem`, as is the present request.
    ///
    /// - Returns: false if memory has no capacity or the response cannot be stored.
    private func storeNegativeResponse(
        _ problem: Problem, _ absence: Cacheability, of response: ResponseHead, _ names: FieldNames
    ) -> Bool {
        var variant: (place: EntryKey, index: VariantIndex)?
        // If variants exist, the absence of one says nothing of the others.
        var names = names
        names.formUnion(siteRequest.expected(in: context.store))
        switch context.node.entries.location(siteRequest, selectedBy: names, claimsIndex: true) {
        case .primary: break
        case .variant(let place, let index): variant = (place, index)
        case .unstorable: return false
        }
        var body: [UInt8] = []
        problem.document.append(to: &body)
        let size = UInt64(body.count)
        let head = RenderedHead(problem.storedHead(bodyBytes: size))
        var facts = absence.metadata(size: size, entityTag: .empty)
        // A negative response must not stand in for another response.
        facts.flags = .mustRevalidate
        (facts.staleIfErrorSeconds, facts.staleWhileRevalidateSeconds) = (0, 0)
        let tags = tags(of: response)
        let overhead = MemoryEntry.overhead(
            keyBytes: variant?.place.key.count ?? siteRequest.key.count,
            headBytes: head.bytes.count,
            tagBytes: MemoryEntry.bytes(of: tags), bodyBytes: size)
        guard fetch.reserve(overhead + BodyLayout.capacity(size)) else { return false }
        fetch.responseHeadReceived(
            FetchedResponse(metadata: facts, head: head, sizeBytes: size, isKept: true, tags: tags),
            isShared: true, nominated: names)
        fetch.bodyReceived(ByteBuffer(bytes: body))
        let entry = fetch.completed(name: nil, tags: tags, place: variant?.place) { _ in
            (facts, head)
        }
        guard let entry else { return true }
        context.node.store.insert(entry)
        insertIndex(variant?.index, names, variant?.place, isNegative: true)
        return true
    }

    /// Delivers the response to the readers.
    ///
    /// - Parameters:
    ///   - response: the response with the decision on its storage.
    ///   - length: length of the body in bytes; `nil` if unknown.
    ///   - isStorable: true if the body permits storage, as far as it was inspected.
    func deliver(_ response: AcceptedResponse, _ length: UInt64?, isStorable: Bool = true) {
        self.acceptedResponse = response
        let (plan, examination) = (siteRequest.policy, response.cacheability)
        let received = response.timing.receivedWallTime
        let stored = plan.storedHead(
            response.head, size: length, examination, received: received)
        let rendered = RenderedHead(stored)
        let isKept =
            isStorable && response.storageDecision.isStorable && !fetch.isInvalidated
            && reserveMemory(length, rendered, response.entryKey)
        if isKept, let index = response.variantIndex, let place = response.entryKey {
            // Before the body: concurrent requests for another variant must add theirs to the same
            // index.
            context.node.entries.insert(
                index, response.nominated, at: place, of: siteRequest.primaryKey,
                version: fetch.invalidationVersion,
                now: response.timing.receivedAt)
        }
        if response.storageDecision.isHitForMiss, plan.imageRules == nil {
            context.node.entries.recordHitForMiss(siteRequest, now: SystemClock.now())
        }
        // A response served from memory needs no window; a miss that cannot get one is refused.
        guard isKept || fetch.openWindow() else {
            return discardResponse(.overloaded(.memory), length)
        }
        var given = FetchedResponse(
            metadata: plan.metadata(examination, size: length ?? 0, stored, of: response.head),
            head: rendered, sizeBytes: length, isKept: isKept, tags: response.tags)
        if !isKept {
            given.head = RenderedHead(
                plan.unstoredHead(
                    response.head, size: length, without: examination.unstoredFields,
                    received: received))
        }
        given.cacheability = examination
        fetch.responseHeadReceived(
            given, isShared: response.storageDecision.isCollapsible,
            isStored: isStorable && response.storageDecision.isStorable,
            nominated: response.nominated,
            requesterResponse: requesterResponse(given, response),
            isHitForMiss: response.storageDecision.isHitForMiss)
    }

    /// Returns the response with the fields that are sent to the requester but not stored (RFC 9111
    /// §5.2.2.4, §5.2.2.7); `nil` if there are none.
    private func requesterResponse(_ given: FetchedResponse, _ response: AcceptedResponse)
        -> FetchedResponse?
    {
        guard !response.cacheability.unstoredFields.isEmpty else { return nil }
        var own = given
        own.head = RenderedHead(
            siteRequest.policy.unstoredHead(
                response.head, size: given.sizeBytes, without: FieldNames(),
                received: response.timing.receivedWallTime))
        return own
    }

    /// Inserts an entry, offers it to its owners, and inserts the variant index that lists it.
    func insertEntry(
        _ entry: MemoryEntry, _ index: VariantIndex?, _ names: FieldNames, _ place: EntryKey?
    ) {
        context.node.entries.insert(entry)
        if siteRequest.policy.settings.usesPeers { context.node.entries.offer(entry) }
        insertIndex(index, names, place)
    }

    /// Inserts the variant index that lists the entry at `place`; does nothing for a primary entry.
    private func insertIndex(
        _ index: VariantIndex?, _ names: FieldNames, _ place: EntryKey?, isNegative: Bool = false
    ) {
        guard let index, let place else { return }
        context.node.entries.insert(
            index, names, at: place, of: siteRequest.primaryKey, version: fetch.invalidationVersion,
            now: SystemClock.now(),
            inMemoryAlone: isNegative)
    }

    /// Returns the tags of the response; logs if some were dropped, because purges by those will
    /// not find it.
    private func tags(of head: ResponseHead) -> [[UInt8]] {
        let tags = siteRequest.policy.tags(
            of: head, key: siteRequest.key, context.siteOriginals(by: siteRequest.policy),
            redirectedURLs: redirectedURLs)
        if tags.droppedCount > 0 {
            context.logTruncatedTags(tags.droppedCount, of: siteRequest.key, for: fetch.correlation)
        }
        return tags.tags
    }

    /// URL from which the response came after redirects; empty without redirects.
    var redirectedURLs: [[UInt8]] { redirects.last.map { [$0.url] } ?? [] }

    /// Reserves memory for the body; returns false if it must not be kept, as far as its length is
    /// known.
    private func reserveMemory(_ length: UInt64?, _ head: RenderedHead, _ place: EntryKey?) -> Bool
    {
        if let length, length > siteRequest.policy.objectBytesMax { return false }
        let overhead = MemoryEntry.overhead(
            keyBytes: place?.key.count ?? siteRequest.key.count, headBytes: head.bytes.count,
            bodyBytes: length ?? 0)
        let body = length.map(BodyLayout.capacity) ?? FetchedResponse.reservedBytes(growingTo: 0)
        return fetch.reserve(
            overhead + body,
            weighedBy: context.node.entries.admissionHash(
                of: name(at: place), at: place?.hash ?? fetch.hash))
    }
}

/// Conclusions from partial and unstorable responses about the complete ones.
extension OriginSource {
    /// Records from a partial response whether the complete one can be stored.
    func recordStorability(from head: ResponseHead, _ receipt: Freshness.ResponseTiming) {
        let storability = siteRequest.policy.storability(
            ofWhole: head, siteRequest, receipt)
        if let storability { context.recordRepresentation(storability, by: fetch) }
    }

    /// Returns true if the fetch must restart for the requested part only, because the response
    /// cannot be stored.
    ///
    /// Also records that it cannot.
    func shouldFetchPart(_ acceptance: StorageDecision, _ head: ResponseHead, _ length: UInt64?)
        -> Bool
    {
        guard siteRequest.policy.imageRules == nil, head.status == 200,
            !acceptance.isStorable || length ?? 0 > siteRequest.policy.objectBytesMax
        else { return false }
        context.recordRepresentation(.unstorable, by: fetch)
        return fetch.staleEntry == nil
            && siteRequest.requestsPart(rangesMax: fetch.settings.rangesMax)
    }

    /// Restarts the fetch for the part in place of the complete response.
    func switchToPart(_ length: UInt64?) {
        driver.handle { $0.lost(effects: &$1) }
        discardResponse(length)
    }

    /// Records that a body of unknown length has exceeded the storage limit.
    func recordOversize() {
        guard siteRequest.policy.imageRules == nil, acceptedResponse != nil,
            fetch.exceedsStorageLimit
        else { return }
        context.recordRepresentation(.unstorable, by: fetch)
    }
}

extension SitePolicy {
    /// Returns whether the complete response, of which `part` is the head of a partial one, can be
    /// stored; `nil` if that is not known.
    fileprivate func storability(
        ofWhole part: ResponseHead, _ request: SiteRequest, _ receipt: Freshness.ResponseTiming
    ) -> RangeRequestHistory.Storability? {
        guard let size = part.completeLength else { return nil }
        guard size <= objectBytesMax else { return .unstorable }
        guard part.status == 206 else { return nil }
        // The complete response will have the same fields, except those specific to the part.
        var whole = part
        whole.status = 200
        let decision = StorageDecision(
            evaluate(whole, request, receipt), varyNames(of: whole), status: 200, before: .nothing)
        return decision.isStorable ? .storable(bytes: size) : .unstorable
    }
}
