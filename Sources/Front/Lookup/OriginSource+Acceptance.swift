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
    /// Decides by the site's rules whether a response is stored and served, then delivers, holds or
    /// discards it.
    ///
    /// - Parameters:
    ///   - head: the head of the origin's response.
    ///   - length: length of the body in bytes; `nil` if unknown.
    ///   - receipt: when the response was requested and received.
    func accept(_ head: ResponseHead, _ length: UInt64?, _ receipt: Freshness.ResponseTiming) {
        let plan = siteRequest.policy
        let evaluated = EvaluatedResponse(head, to: siteRequest, receipt, by: redirects)
        let nominated = evaluated.vary.names
        var acceptance = StorageDecision(
            evaluated.cacheability, evaluated.vary, status: head.status,
            before: driver.storedState(staleEntry, now: receipt.receivedAt))
        if let problem = plan.problem(of: head, evaluated.cacheability) {
            if problem == .encodedImage { context.counters.add(.imagesCoded) }
            let absence = plan.negativeResponse(
                head, evaluated.cacheability, receipt, by: redirects)
            if absence != nil || acceptance.invalidatesStored { removeStaleEntry() }
            if let absence, storeNegativeResponse(problem, absence, of: head, nominated) {
                return discardResponse(length)
            }
            return discardResponse(problem, length, nominated: nominated)
        }
        var place: EntryPlacement?
        if acceptance.isStorable {
            place = context.node.entries.placement(
                siteRequest, selectedBy: nominated, claimsIndex: true)
            if place == nil { acceptance.hasKey = false }
        }
        if acceptance.invalidatesStored { removeStaleEntry() }
        if shouldFetchPart(acceptance, head, length) { return switchToPart(length) }
        let response = AcceptedResponse(
            evaluated: evaluated, storageDecision: acceptance,
            placement: place ?? EntryPlacement(nominated: nominated), tags: tags(of: head))
        if plan.imageRules == nil {
            deliver(response, length)
        } else {
            holdUntilRecognised(HeldResponse(response: response, length: length))
        }
    }

    /// Removes the stored response that the request selects, because it is no longer valid.
    private func removeStaleEntry() {
        if let staleEntry { context.node.entries.remove(staleEntry) }
    }

    /// Stores a negative response, in memory only, for requests that agree in the fields `names`
    /// and in those that select known variants; they are sent `problem`, as is the present request.
    ///
    /// Returns false, with nothing delivered, if memory has no capacity or the values of the
    /// selecting fields are too long for a key.
    private func storeNegativeResponse(
        _ problem: Problem, _ absence: Cacheability, of response: ResponseHead, _ names: FieldNames
    ) -> Bool {
        // If variants exist, the absence of one says nothing of the others.
        var names = names
        names.formUnion(siteRequest.expected(in: context.store))
        let place = context.node.entries.placement(
            siteRequest, selectedBy: names, claimsIndex: true)
        guard let place else { return false }
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
            keyBytes: place.key?.key.count ?? siteRequest.key.count,
            headBytes: head.bytes.count,
            tagBytes: MemoryEntry.bytes(of: tags), bodyBytes: size)
        guard fetch.reserve(overhead + BodyLayout.capacity(size)) else { return false }
        fetch.responseHeadReceived(
            FetchedResponse(metadata: facts, head: head, sizeBytes: size, isKept: true, tags: tags),
            isShared: true, nominated: names)
        fetch.bodyReceived(ByteBuffer(bytes: body))
        let entry = fetch.completed(name: nil, tags: tags, place: place.key) { _ in
            (facts, head)
        }
        guard let entry else { return true }
        context.node.store.insert(entry)
        insertIndex(of: place, isNegative: true)
        return true
    }

    /// Delivers the head of the response to the readers, or refuses it if memory has no capacity.
    ///
    /// Also inserts the variant index that lists the response, and records if later responses will
    /// not be stored either.
    ///
    /// - Parameters:
    ///   - response: the response with the decision on its storage.
    ///   - length: length of the body in bytes; `nil` if unknown.
    ///   - isStorable: true if the body permits storage, as far as it was inspected.
    func deliver(_ response: AcceptedResponse, _ length: UInt64?, isStorable: Bool = true) {
        self.acceptedResponse = response
        let (plan, evaluated) = (siteRequest.policy, response.evaluated)
        let stored = evaluated.storedHead(size: length, under: plan)
        let rendered = RenderedHead(stored)
        let isKept =
            isStorable && response.storageDecision.isStorable && !fetch.isInvalidated
            && fetch.reserveEntry(length, rendered, name: driver.name, at: response.placement)
        // Before the body: concurrent requests for another variant must add theirs to the same
        // index.
        if isKept { insertIndex(of: response.placement) }
        if response.storageDecision.isHitForMiss, plan.imageRules == nil {
            context.node.entries.recordHitForMiss(siteRequest, now: SystemClock.now())
        }
        // A response served from memory needs no window; a miss that cannot get one is refused.
        guard isKept || fetch.openWindow() else {
            return discardResponse(.overloaded(.memory), length)
        }
        var given = FetchedResponse(
            metadata: plan.metadata(
                evaluated.cacheability, size: length ?? 0, stored, of: evaluated.head),
            head: rendered, sizeBytes: length, isKept: isKept, tags: response.tags)
        if !isKept {
            given.head = unstoredHead(
                evaluated, size: length, without: evaluated.cacheability.unstoredFields)
        }
        given.cacheability = evaluated.cacheability
        fetch.responseHeadReceived(
            given, isShared: response.storageDecision.isCollapsible,
            isStored: isStorable && response.storageDecision.isStorable,
            nominated: evaluated.vary.names,
            requesterResponse: requesterResponse(given, response),
            isHitForMiss: response.storageDecision.isHitForMiss)
    }

    /// Returns the response with the fields that are sent to the requester but not stored (RFC 9111
    /// §5.2.2.4, §5.2.2.7); `nil` if there are none.
    private func requesterResponse(_ given: FetchedResponse, _ response: AcceptedResponse)
        -> FetchedResponse?
    {
        let evaluated = response.evaluated
        guard !evaluated.cacheability.unstoredFields.isEmpty else { return nil }
        var own = given
        own.head = unstoredHead(evaluated, size: given.sizeBytes, without: FieldNames())
        return own
    }

    /// Returns the head of a response as sent without being stored, without the fields `omitted`.
    private func unstoredHead(
        _ evaluated: EvaluatedResponse, size: UInt64?, without omitted: FieldNames
    ) -> RenderedHead {
        RenderedHead(
            siteRequest.policy.unstoredHead(
                evaluated.head, size: size, without: omitted,
                received: evaluated.timing.receivedWallTime))
    }

    /// Inserts the variant index that lists the response at `place`; does nothing for a primary
    /// entry.
    private func insertIndex(of place: EntryPlacement, isNegative: Bool = false) {
        context.node.entries.insertIndex(
            listing: place, of: siteRequest.primaryKey, version: fetch.invalidationVersion,
            inMemoryAlone: isNegative)
    }

    /// Returns the tags of the response; logs if some were dropped, because purges by those will
    /// not find it.
    private func tags(of head: ResponseHead) -> [[UInt8]] {
        let tags = siteRequest.policy.tags(
            of: head, key: siteRequest.key, context.siteOriginals(by: siteRequest.policy),
            redirectedURLs: redirects.finalURLs)
        if tags.droppedCount > 0 {
            context.logTruncatedTags(tags.droppedCount, of: siteRequest.key, for: fetch.correlation)
        }
        return tags.tags
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
    /// Records that it cannot, whether or not a part is requested.
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

    /// Makes the readers start again, so that the requested part is fetched, and discards the
    /// complete response, whose body has `length` bytes.
    func switchToPart(_ length: UInt64?) {
        driver.handle { $0.lost(effects: &$1) }
        discardResponse(length)
    }

    /// Records that the response cannot be stored, if its body has exceeded the storage limit; does
    /// nothing for an image.
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
