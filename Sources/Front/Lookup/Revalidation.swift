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

/// The stored responses that a fetch validates at its origin, and their updates by responses
/// without a body.
struct Revalidation {
    /// The fetch that validates.
    let fetch: ActiveFetch
    /// The request in the form in which the origin receives it.
    let siteRequest: SiteRequest
    /// Disk name of the URL's primary entry; `nil` without a disk.
    let name: EntryName?
    /// The stored response to validate that the request selects.
    private(set) var staleEntry: MemoryEntry?
    /// All stored responses to validate: ``staleEntry``, or those that other requests select.
    private(set) var candidates: [MemoryEntry] = []

    private var context: EventLoopContext { fetch.context }

    /// Selects the responses that the fetch validates by `query`.
    init(_ fetch: ActiveFetch, _ query: SiteRequest, name: EntryName?) {
        self.fetch = fetch
        siteRequest = query
        self.name = name
        guard query.mode == .whole else { return }
        staleEntry = fetch.staleEntry
        if let staleEntry {
            candidates = [staleEntry]
        } else if !query.isImage {
            // Not for images: some origins that derive images of several types from one ignore
            // Accept in conditional requests.
            candidates = fetch.context.node.entries.variants(of: query)
        }
    }

    /// Handles 304: keeps the stored body, with new metadata and a new head (RFC 9111 §3.2,
    /// §4.3.4).
    ///
    /// If it confirms none of ``candidates``, all of them are removed and the readers start again.
    func freshen(
        with head: ResponseHead, _ receipt: Freshness.ResponseTiming, by redirects: [Redirect]
    ) {
        let confirmed = Freshening.responsesToUpdate(
            by: head, of: candidates.map { Validators($0.head, metadata: $0.metadata) },
            received: receipt.receivedWallTime)
        guard let number = confirmed.first, hasSameRedirects(candidates[number], redirects) else {
            // Later requests are then unconditional.
            for entry in candidates { context.node.entries.remove(entry) }
            return fetch.validatorMismatched()
        }
        let entry = candidates[number]
        let news = update(entry, with: head, receipt, by: redirects)
        fetch.storedResponseUsed(
            news.entry ?? entry, isShared: news.cacheability.notStoredReason == nil,
            isStored: news.isStored, isValidated: true, nominated: news.nominated)
    }

    /// Returns true if the response came through the same redirects as the entry: validators of
    /// another resource mean nothing (RFC 9110 §8.8).
    private func hasSameRedirects(_ entry: MemoryEntry, _ redirects: [Redirect]) -> Bool {
        guard siteRequest.policy.imageRules != nil else { return true }
        return EntryTags(key: siteRequest.key, urls: redirects.finalURLs).tags
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
    ///   - redirects: the redirects that led to it.
    ///   - freshnessOnly: true for HEAD, which updates freshness fields only.
    /// - Returns: the updated entry and whether it is stored.
    private func update(
        _ stale: MemoryEntry, with head: ResponseHead, _ receipt: Freshness.ResponseTiming,
        by redirects: [Redirect], freshnessOnly: Bool = false
    ) -> UpdateResult {
        let plan = siteRequest.policy
        let merged = RenderedHead(stale).stored.updated(
            with: head, metadata: stale.metadata, freshnessOnly: freshnessOnly)
        let evaluated = EvaluatedResponse(
            merged, to: siteRequest, receipt, by: redirects, asGet: true)
        let (examination, nominated) = (evaluated.cacheability, evaluated.vary.names)
        let stored = evaluated.storedHead(size: stale.metadata.size, under: plan)
        let staleKey = EntryKey(key: stale.key, hash: stale.hash)
        var place: EntryPlacement? = EntryPlacement(nominated: nominated)
        // A response selected by another request may now match this one; a response selected by
        // other fields than before is stored under another key (RFC 9111 §4.1).
        if !siteRequest.isHead,
            self.staleEntry == nil || nominated != siteRequest.nominated(of: stale)
        {
            place = context.node.entries.placement(siteRequest, selectedBy: nominated)
        }
        let key = place?.key ?? staleKey
        let entry = fetch.makeFreshenedEntry(
            stale, stale.name == nil || name == nil ? nil : EntryName(ofKey: key.key),
            tags: plan.tags(
                stored: stale.tags, key: siteRequest.key, context.siteOriginals(by: plan)),
            place: key, plan.metadata(examination, size: stale.metadata.size, stored, of: merged),
            RenderedHead(stored))
        let isStored = place != nil && examination.notStoredReason == nil && entry != nil
        if isStored, let entry, let place {
            // The key of the request is taken over by the new entry or its variant index. It may be
            // another variant now.
            let isMoved = key.key != stale.key && stale.key != siteRequest.key
            if self.staleEntry != nil, isMoved { context.node.entries.remove(stale) }
            context.node.entries.insert(
                entry, at: place, of: siteRequest.primaryKey,
                isOffered: plan.settings.usesPeers)
        } else if examination.notStoredReason?.isRequestSpecific != true {
            context.node.entries.remove(stale)
        }
        return UpdateResult(
            entry: entry, cacheability: examination, nominated: nominated, isStored: isStored)
    }

    /// Updates or invalidates the stored response to GET by the response to HEAD (RFC 9111 §4.3.5);
    /// does nothing for a request with Authorization or no-store.
    func freshenByHead(
        _ head: ResponseHead, _ receipt: Freshness.ResponseTiming, by redirects: [Redirect]
    ) {
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
        case .update:
            _ = update(stored, with: head, receipt, by: redirects, freshnessOnly: true)
        case .invalidate where siteRequest.policy.settings.usesPeers && context.node.isInCluster:
            context.purges.invalidate(siteRequest.key)
        case .invalidate: context.node.entries.remove(stored)
        case .noEffect: break
        }
    }
}

extension [Redirect] {
    /// URL from which the response came after these redirects; empty without redirects.
    var finalURLs: [[UInt8]] { last.map { [$0.url] } ?? [] }
}
