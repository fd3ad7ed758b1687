import Ground
import HTTPRules
import Logging
import Serving
import Store
import Telemetry
import Wire

/// What each hit asks of what it shares with others, and what is counted of it.
///
/// Calls of their own, in which those objects are borrowed: a door would count a reference to each,
/// and where all loops share one, all cores would write to the line that its count is in.
extension EventLoopContext {
    /// The keyed hash of the key in `range`.
    @inline(never)
    func hash(_ key: Span<UInt8>, _ range: Range<Int>) -> UInt64 { store.hash(key, range) }

    /// What memory has under the key in `range`, noted as used; nil if nothing.
    @inline(never)
    func find(_ key: Span<UInt8>, _ range: Range<Int>, hash: UInt64) -> MemoryEntry? {
        store.find(key, range, hash: hash)
    }

    /// Whether a stored answer may be given to `request` unasked, as long as nothing that was
    /// invalidated can be unknown here.
    @inline(never)
    func evaluate(_ facts: EntryMetadata, for request: RequestTraits, now: Instant) -> HitDecision {
        fence.evaluate(facts, for: request, now: now)
    }

    /// Counts an answer of this status, and how the cache took part in it.
    @inline(never)
    func responseStarted(_ status: UInt16, _ part: CacheResult) {
        counters.add(.responses(status: status))
        counters.add(part.metric)
    }

    /// Counts how long a request has taken, and the bytes of its answer's body.
    @inline(never)
    func responseEnded(_ part: CacheResult, begunAt: Instant, bodyBytes: UInt64) {
        outcomes.add(
            part.outcome, nanoseconds: (SystemClock.now() - begunAt).nanoseconds,
            bodyBytes: bodyBytes)
    }
}

/// What a request that a parser holds selects in memory of the answers that vary, if it may be
/// given at once; nil if it takes a second look.
extension EventLoopContext {
    /// Of the images under `key`.
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

    /// Of a site's answers, where its origin is told what the client said.
    ///
    /// The head of the request is in `head` of `bytes`.
    func variant(
        of index: MemoryEntry, by plan: SitePolicy, _ parser: borrowing RequestParser,
        _ bytes: Span<UInt8>, _ head: Range<Int>, key: Span<UInt8>, _ facts: RequestTraits,
        now: Instant
    ) -> MemoryEntry? {
        // Connection may nominate fields that the origin is not told then.
        guard Self.isPlainConnection(parser, bytes), let variants = VariantIndex(of: index),
            variants.sets.allSatisfy({
                $0.names.allSatisfy(plan.requestFieldRules.forwardsUnchanged)
            })
        else { return nil }
        let request = BufferedRequest(copying: parser, bytes, head)
        let lines = RequestFields(bytes: request.head, lines: request.lines)
        return usableEntry(variants.newest(under: key, for: lines, in: store), facts, now: now)
    }

    private func usableEntry(_ found: MemoryEntry?, _ facts: RequestTraits, now: Instant)
        -> MemoryEntry?
    {
        guard let found, fence.evaluate(found.metadata, for: facts, now: now) != .revalidate else {
            return nil
        }
        return found
    }

    /// Connection, if it is there, says nothing but whether it stays open.
    private static func isPlainConnection(
        _ parser: borrowing RequestParser, _ bytes: Span<UInt8>
    ) -> Bool {
        guard parser.fields.present.contains(.connection) else { return true }
        for number in 0..<parser.fields.count where parser.fields[number].id == .connection {
            let value = parser.fields[number].value.range
            guard
                bytes.matchesIgnoringCase("keep-alive", at: value)
                    || bytes.matchesIgnoringCase("close", at: value)
            else { return false }
        }
        return true
    }
}

extension EventLoopContext {
    /// An answer has more tags than are kept: a purge by those will not find it.
    func logTruncatedTags(_ count: Int, of key: [UInt8], for cause: RequestCorrelation) {
        node.logger.warning(
            "tags left out: too many or too long",
            metadata: cause.metadata([
                "url": "\(String(decoding: key, as: UTF8.self))", "tags": "\(count)",
            ]))
    }

    /// What says of which originals answers of the site of `plan` are made.
    ///
    /// It is what holds on this loop, whatever held when the request came: what is tagged once all
    /// loops have taken over other rules is tagged by those.
    func siteOriginals(by plan: SitePolicy) -> SiteOriginals? {
        let plans = settings.sitePolicies
        guard plan.imageRules == nil else { return nil }
        if plan.number < plans.count, plans[plan.number] === plan { return plan.originals }
        let present = plans.first { $0.isSuccessor(of: plan) }
        return (present ?? plan).originals
    }
}
