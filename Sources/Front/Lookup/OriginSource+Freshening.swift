import Ground
import HTTPRules
import Logging
import NIOCore
import Origin
import Peering
import Platform
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// Updates of stored responses by responses without a body.
extension OriginSource {
    /// Handles 304: keeps the stored body, with new metadata and a new head (RFC 9111 §3.2,
    /// §4.3.4).
    func freshen(with head: ResponseHead, _ receipt: Freshness.ResponseTiming) {
        let confirmed = Freshening.responsesToUpdate(
            by: head, of: validationCandidates.map { Validators($0.head, metadata: $0.metadata) },
            received: receipt.receivedWallTime)
        guard let number = confirmed.first, hasSameRedirects(validationCandidates[number]) else {
            // Later requests are then unconditional.
            for entry in validationCandidates { context.node.entries.remove(entry) }
            fetch.validatorMismatched()
            return driver.closeToReaders()
        }
        let entry = validationCandidates[number]
        let news = update(entry, with: head, receipt)
        fetch.storedResponseUsed(
            news.entry ?? entry, isShared: news.cacheability.notStoredReason == nil,
            isStored: news.isStored, isValidated: true, nominated: news.nominated)
        driver.closeToReaders()
    }

    /// Returns true if the response came through the same redirects as the entry: validators of
    /// another resource mean nothing (RFC 9110 §8.8).
    private func hasSameRedirects(_ entry: MemoryEntry) -> Bool {
        guard siteRequest.policy.imageRules != nil else { return true }
        return EntryTags(key: siteRequest.key, urls: redirectedURLs).tags
            == entry.tags.filter { URLName.name(inTag: $0) != nil }
    }

    /// Result of the update of a stored response.
    private struct UpdateResult {
        /// The updated entry; `nil` if memory has no capacity for it.
        let entry: MemoryEntry?
        let cacheability: Cacheability
        /// Request fields that select the response.
        let nominated: FieldNames
        /// True if the updated entry is stored.
        let isStored: Bool
    }

    /// Replaces the stored response with one updated by the fields of `head`, or removes it if it
    /// may no longer be stored.
    ///
    /// - Parameters:
    ///   - stale: the stored response.
    ///   - head: the head of the origin's response, whose fields replace those stored.
    ///   - receipt: when the response was requested and received.
    ///   - freshnessOnly: true for HEAD, which updates freshness fields only.
    /// - Returns: the updated entry and whether it is stored.
    private func update(
        _ stale: MemoryEntry, with head: ResponseHead, _ receipt: Freshness.ResponseTiming,
        freshnessOnly: Bool = false
    ) -> UpdateResult {
        let plan = siteRequest.policy
        let merged = RenderedHead(stale).stored.updated(
            with: head, metadata: stale.metadata, freshnessOnly: freshnessOnly)
        var examination = plan.evaluate(
            merged, siteRequest, receipt, asGet: true)
        for redirect in redirects { plan.limit(&examination, by: redirect) }
        let redirected = merged.restricted(by: redirects, examination)
        let stored = plan.storedHead(
            redirected, size: stale.metadata.size, examination, received: receipt.receivedWallTime)
        let vary = plan.varyNames(of: redirected)
        var place = EntryKey(key: stale.key, hash: stale.hash)
        var index: VariantIndex?
        var isPlaceable = true
        // A response selected by another request may now match this one; a response selected by
        // other fields than before is stored under another key (RFC 9111 §4.1).
        if !siteRequest.isHead,
            self.staleEntry == nil || vary.names != siteRequest.nominated(of: stale)
        {
            switch context.node.entries.location(siteRequest, selectedBy: vary.names) {
            case .primary: break
            case .variant(let found, let names): (place, index) = (found, names)
            case .unstorable: isPlaceable = false
            }
        }
        let entry = fetch.makeFreshenedEntry(
            stale, stale.name == nil ? nil : name(at: place),
            tags: plan.tags(
                stored: stale.tags, key: siteRequest.key, context.siteOriginals(by: plan)),
            place: place, plan.metadata(examination, size: stale.metadata.size, stored, of: merged),
            RenderedHead(stored))
        let isStored = isPlaceable && examination.notStoredReason == nil && entry != nil
        if isStored, let entry {
            // The key of the request is taken over by the new entry or its variant index. It may be
            // another variant now.
            let isMoved = place.key != stale.key && stale.key != siteRequest.key
            if self.staleEntry != nil, isMoved { context.node.entries.remove(stale) }
            insertEntry(entry, index, vary.names, place)
        } else if examination.notStoredReason?.isRequestSpecific != true {
            context.node.entries.remove(stale)
        }
        return UpdateResult(
            entry: entry, cacheability: examination, nominated: vary.names,
            isStored: isStored)
    }

    /// Updates or invalidates the stored response to GET by the response to HEAD (RFC 9111 §4.3.5).
    func freshenByHead(_ head: ResponseHead, _ receipt: Freshness.ResponseTiming) {
        guard
            !siteRequest.hasAuthorization, !siteRequest.cacheControl.isNoStore,
            case .found(let stored, let reuse) = siteRequest.find(
                in: context.node.store, now: SystemClock.now()),
            reuse != .unusable
        else { return }
        let finding = HeadFreshening(
            head, stored: stored.status,
            validators: Validators(stored.head, metadata: stored.metadata),
            size: stored.metadata.size,
            received: receipt.receivedWallTime)
        switch finding {
        case .update: _ = update(stored, with: head, receipt, freshnessOnly: true)
        case .invalidate where siteRequest.policy.settings.usesPeers && context.node.isInCluster:
            context.purges.invalidate(siteRequest.key)
        case .invalidate: context.node.entries.remove(stored)
        case .noEffect: break
        }
    }
}
