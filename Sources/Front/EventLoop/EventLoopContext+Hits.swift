import Ground
import HTTPRules
import Logging
import Peering
import Platform
import Serving
import Store
import Telemetry
import Wire

/// Calls of each hit on objects that are shared between loops, and its metrics.
///
/// They are separate, not inlined functions in which the objects are borrowed: inlined into the
/// handler, each would be retained, and for objects that all loops share, all cores would write to
/// the cache line of the reference count.
extension EventLoopContext {
    /// Returns the keyed hash of the key in `range` of the bytes `key`.
    @inline(never)
    func hash(_ key: Span<UInt8>, _ range: Range<Int>) -> UInt64 { store.hash(key, range) }

    /// Returns the memory entry under the key in `range` and records its use; `nil` if there is
    /// none.
    @inline(never)
    func find(_ key: Span<UInt8>, _ range: Range<Int>, hash: UInt64) -> MemoryEntry? {
        store.find(key, range, hash: hash)
    }

    /// Decides whether a stored response may be served to `request` without contacting the origin,
    /// given the state of the fence.
    @inline(never)
    func evaluate(_ facts: EntryMetadata, for request: RequestTraits, now: Instant) -> HitDecision {
        fence.evaluate(facts, for: request, now: now)
    }

    /// Counts a response with this status and this cache result.
    @inline(never)
    func responseStarted(_ status: UInt16, _ outcome: CacheOutcome) {
        counters.add(.responses(status: status))
        counters.add(outcome.metric)
    }

    /// Counts the duration of a request and the body bytes of its response.
    @inline(never)
    func responseEnded(_ outcome: CacheOutcome, begunAt: Instant, bodyBytes: UInt64) {
        outcomes.add(
            outcome, nanoseconds: (SystemClock.now() - begunAt).nanoseconds,
            bodyBytes: bodyBytes)
    }
}

/// Selection of variants in memory for a parsed request; `nil` if a full lookup is required or no
/// variant may be served at once.
extension EventLoopContext {
    /// Returns the variant of the image under `key` that the request selects; `nil` if none may be
    /// served without revalidation.
    func variant(
        ofImage index: MemoryEntry, _ parser: borrowing RequestParser, _ bytes: Span<UInt8>,
        key: Span<UInt8>, _ facts: RequestTraits, now: Instant
    ) -> MemoryEntry? {
        var rules = NegotiationNormaliser()
        for number in 0..<parser.fields.count {
            rules.add(parser.fields[number], in: bytes)
        }
        let told = settings.images.policy(ofKey: key).forwarded(rules.negotiation)
        return usableEntry(
            VariantIndex(of: index)?.newest(under: key, for: told, in: store), facts, now: now)
    }

    /// Returns the variant of a site's response that the request selects, if the selecting fields
    /// are forwarded to the origin unchanged.
    ///
    /// - Parameters:
    ///   - index: the entry under the key, which must be a variant index.
    ///   - plan: the policy of the site.
    ///   - parser: the parser that has read the request head.
    ///   - bytes: the buffer that contains the request head.
    ///   - head: the range of the request head in `bytes`.
    ///   - key: the key of the request.
    ///   - facts: the traits of the request.
    ///   - now: the current time.
    /// - Returns: the variant, which may be served without revalidation; `nil` if there is none, or
    ///   the request must take the slow path.
    func variant(
        of index: MemoryEntry, by plan: SitePolicy, _ parser: borrowing RequestParser,
        _ bytes: Span<UInt8>, _ head: Range<Int>, key: Span<UInt8>, _ facts: RequestTraits,
        now: Instant
    ) -> MemoryEntry? {
        // Connection may nominate fields, which are then not forwarded to the origin.
        guard parser.nominatesNoFields(in: bytes), let variants = VariantIndex(of: index),
            variants.sets.allSatisfy({
                $0.names.allSatisfy(plan.requestFieldRules.forwardsUnchanged)
            })
        else { return nil }
        let request = BufferedRequest(copying: parser, bytes, head)
        let lines = RequestFields(bytes: request.head, lines: request.lines)
        return usableEntry(variants.newest(under: key, for: lines, in: store), facts, now: now)
    }

    /// Returns `found` if it may be served without revalidation.
    private func usableEntry(_ found: MemoryEntry?, _ facts: RequestTraits, now: Instant)
        -> MemoryEntry?
    {
        guard let found, fence.evaluate(found.metadata, for: facts, now: now) != .revalidate else {
            return nil
        }
        return found
    }
}

extension RequestParser {
    /// Returns true if Connection is absent or only `keep-alive` or `close`, so that it nominates
    /// no fields; `bytes` contain the head.
    fileprivate func nominatesNoFields(in bytes: Span<UInt8>) -> Bool {
        guard fields.present.contains(.connection) else { return true }
        for number in 0..<fields.count where fields[number].id == .connection {
            let value = fields[number].value.range
            guard
                bytes.matchesIgnoringCase("keep-alive", at: value)
                    || bytes.matchesIgnoringCase("close", at: value)
            else { return false }
        }
        return true
    }
}

extension EventLoopContext {
    /// Logs that a response has more tags than are kept; purges by the dropped tags will not find
    /// it.
    func logTruncatedTags(_ count: Int, of key: [UInt8], for cause: RequestCorrelation) {
        node.logger.warning(
            "tags ignored: too many or too long",
            metadata: cause.metadata([
                "url": "\(String(decoding: key, as: UTF8.self))", "tags": "\(count)",
            ]))
    }

    /// Returns the rule by which tags of original images are derived for responses of the site of
    /// `plan`; `nil` for the image API.
    ///
    /// The result follows the current settings of this loop, even for a request that began under
    /// older ones: once all loops have taken over new settings, all responses are tagged by them.
    func siteOriginals(by plan: SitePolicy) -> SiteOriginals? {
        let plans = settings.sitePolicies
        guard plan.imageRules == nil else { return nil }
        if plan.number < plans.count, plans[plan.number] === plan { return plan.originals }
        let present = plans.first { $0.isSuccessor(of: plan) }
        return (present ?? plan).originals
    }
}
