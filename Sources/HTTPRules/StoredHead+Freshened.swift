package import Ground

extension StoredHead {
    /// A stored answer after a 304 has confirmed and updated it.
    package struct Freshened: Hashable, Sendable {
        /// May now say that the answer is no longer to be stored.
        package var examination: Examination
        package var head: StoredHead
        package var facts: EntryFacts
    }

    /// The fields that a 304 changes (RFC 9111 §3.2).
    ///
    /// Content-Type, Content-Encoding, Content-Length and Content-Range describe the body, which is
    /// the old one.
    private static let updated: [FieldName] = [
        .contentLanguage, .contentDisposition, .etag, .lastModified, .cacheControl, .expires, .vary,
    ]

    /// Updates this head and its facts with a 304 to a conditional request made from them (RFC 9111
    /// §3.2, §4.3.4).
    ///
    /// Nil if the 304 carries another validator than the one stored: then it confirms some other
    /// answer, and the request must be made again without condition. A 304 without any validator
    /// confirms what was asked about.
    ///
    /// `redirects` are those by way of which the 304 came.
    package func freshened(
        with answer: AnswerHead, facts: EntryFacts, receipt: Freshness.Receipt,
        redirects: [Redirect] = [], defaultTTL: Interval, types: ContentTypes
    ) -> Freshened? {
        guard confirms(answer, facts: facts, receipt: receipt) else { return nil }
        let merged = merged(with: answer)
        var examination = AnswerRules.examine(
            merged, negotiation: facts.negotiation, receipt: receipt, defaultTTL: defaultTTL,
            types: types)
        for redirect in redirects {
            examination.limit(by: redirect, defaultTTL: defaultTTL)
        }
        let head = StoredHead(
            merged.redirected(by: redirects, examination), size: facts.size)
        return Freshened(
            examination: examination, head: head,
            facts: examination.facts(size: facts.size, head: head))
    }

    /// True unless the 304 names another validator than the stored one (RFC 9111 §4.3.4).
    private func confirms(
        _ answer: AnswerHead, facts: EntryFacts, receipt: Freshness.Receipt
    ) -> Bool {
        if let value = answer.first(.etag), let tag = EntityTag(answer.bytes.span, at: value.range)
        {
            guard let stored = EntityTag(bytes.span, at: entityTag.range) else { return false }
            return tag.matches(
                in: answer.bytes.span, stored, in: bytes.span, by: tag.isWeak ? .weak : .strong)
        }
        if let modified = Freshness.time(answer, .lastModified, receipt) {
            return facts.lastModified == nil || facts.lastModified == modified
        }
        return true
    }

    /// The stored answer as if it had come whole, with the fields and the times of the 304.
    ///
    /// What the Connection of the 304 nominates is of that message only (RFC 9110 §7.6.1).
    private func merged(with answer: AnswerHead) -> AnswerHead {
        var lines: [FieldLine] = []
        var replaced = FieldSet()
        let nominated = Self.nominated(answer)
        for line in answer.lines
        where Self.updated.contains(line.id) && !nominated.contains(line.id) {
            replaced.insert(line.id)
        }
        // Without Content-Length, which stands before the parts.
        for line in Self.lines(bytes)
        where line.name.start >= partialStart && !replaced.contains(line.id) {
            lines.append(line)
        }
        for line in answer.lines {
            guard replaced.contains(line.id) || line.id == .date || line.id == .age else {
                continue
            }
            lines.append(
                FieldLine(
                    id: line.id, name: Self.shifted(line.name, by: bytes.count),
                    value: Self.shifted(line.value, by: bytes.count)))
        }
        return AnswerHead(status: 200, bytes: bytes + answer.bytes, lines: lines)
    }

    private static func shifted(_ extent: Extent, by offset: Int) -> Extent {
        Extent(start: Int(extent.start) + offset, count: Int(extent.count))
    }
}
