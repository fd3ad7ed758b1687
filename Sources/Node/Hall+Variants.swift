import Ground
import HTTPRules
import Serving
import Store
import Wire

/// What a request that a parser holds selects in memory of the answers that vary, if it may be
/// given at once; nil if it takes a second look.
extension Hall {
    /// Of the images under `key`.
    func variant(
        ofImage index: Resident, _ parser: borrowing RequestParser, _ bytes: Span<UInt8>,
        key: Span<UInt8>, _ facts: RequestFacts, now: Instant
    ) -> Resident? {
        var rules = NegotiationRules()
        for number in 0..<parser.fields.count {
            rules.add(parser.fields[number], in: bytes)
        }
        let told = settings.images.plan(ofKey: key).told(rules.negotiation)
        return usable(
            VariantIndex(of: index)?.newest(under: key, for: told, in: store), facts, now: now)
    }

    /// Of a site's answers, where its origin is told what the client said.
    ///
    /// The head of the request is in `head` of `bytes`.
    func variant(
        of index: Resident, by plan: SitePlan, _ parser: borrowing RequestParser,
        _ bytes: Span<UInt8>, _ head: Range<Int>, key: Span<UInt8>, _ facts: RequestFacts,
        now: Instant
    ) -> Resident? {
        // Connection may nominate fields that the origin is not told then.
        guard Self.isPlainConnection(parser, bytes), let variants = VariantIndex(of: index),
            variants.sets.allSatisfy({ $0.names.allSatisfy(plan.requestRules.passesUnchanged) })
        else { return nil }
        let request = PendingRequest(copying: parser, bytes, head)
        let lines = RequestLines(bytes: request.head, lines: request.lines)
        return usable(variants.newest(under: key, for: lines, in: store), facts, now: now)
    }

    private func usable(_ found: Resident?, _ facts: RequestFacts, now: Instant) -> Resident? {
        guard let found, fence.judge(found.facts, for: facts, now: now) != .revalidate else {
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
                bytes.holdsIgnoringCase("keep-alive", at: value)
                    || bytes.holdsIgnoringCase("close", at: value)
            else { return false }
        }
        return true
    }
}
