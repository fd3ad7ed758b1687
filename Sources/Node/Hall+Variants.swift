import Ground
import HTTPRules
import Serving
import Store
import Wire

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
