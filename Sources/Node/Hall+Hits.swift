import Ground
import Serving
import Store
import Telemetry

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
