import Ground
import HTTPRules
import Serving
import Store
import Wire

/// Answers in memory that were selected by fields of their requests, given at once.
extension Door {
    /// The image under `key` that the request selects; nil if it takes a second look.
    func variant(
        ofImage index: Resident, _ bytes: Span<UInt8>, key: Span<UInt8>, now: Instant
    ) -> Resident? {
        var rules = NegotiationRules()
        for number in 0..<parser.fields.count {
            rules.add(parser.fields[number], in: bytes)
        }
        let plan = settings.images.plan(ofKey: key)
        return variant(of: index, under: key, for: plan.told(rules.negotiation), now: now)
    }

    /// The same of a site, where its origin is told of the fields what the client said.
    func variant(
        of index: Resident, by plan: SitePlan, _ bytes: Span<UInt8>, key: Span<UInt8>,
        now: Instant
    ) -> Resident? {
        // It may nominate fields that the origin is not told then.
        guard !parser.fields.present.contains(.connection) || isPlainConnection(bytes),
            let variants = VariantIndex(of: index),
            variants.sets.allSatisfy({ $0.names.allSatisfy(plan.requestRules.passesUnchanged) })
        else { return nil }
        let request = PendingRequest(copying: parser, bytes, headRange)
        let lines = RequestLines(bytes: request.head, lines: request.lines)
        return usable(variants.newest(under: key, for: lines, in: hall.store), now: now)
    }

    private func variant(
        of index: Resident, under key: Span<UInt8>, for told: RequestLines, now: Instant
    ) -> Resident? {
        let variants = VariantIndex(of: index)
        return usable(variants?.newest(under: key, for: told, in: hall.store), now: now)
    }

    /// Nil for what may not be given unasked.
    private func usable(_ found: Resident?, now: Instant) -> Resident? {
        guard let found, hall.fence.judge(found.facts, for: requestFacts, now: now) != .revalidate
        else { return nil }
        return found
    }

    /// Connection says nothing but whether it stays open.
    private func isPlainConnection(_ bytes: Span<UInt8>) -> Bool {
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
