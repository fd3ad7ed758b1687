package import Ground

extension StoredHead {
    /// The stored answer as if it had come whole, with the fields of a 304 that confirmed it, or of
    /// a 200 to HEAD that agrees with it (RFC 9111 §3.2, §4.3.4, §4.3.5).
    ///
    /// To be examined and rendered like an answer that came now. Every field of `answer` stands in
    /// place of the stored one of its name, but what is of one hop, and what says how the stored
    /// content is to be read: Content-Type, Content-Encoding, Content-Range, Content-Length,
    /// Content-Digest. Date and Age are those of `answer` only: the stored ones count from a moment
    /// that is over.
    ///
    /// `freshnessOnly`: of `answer` only Date, Age and what says for how long it is fresh count, so
    /// that an answer to HEAD, which any client can ask for in its own words, replaces nothing that
    /// is stored.
    ///
    /// What the rendered lines do not say any more, `facts` say: see ``EntryFlags/ownControl`` and
    /// ``EntryFlags/hidesControl``.
    package func updated(
        with response: ResponseHead, metadata: EntryMetadata, freshnessOnly: Bool = false
    ) -> ResponseHead {
        let source = response.bytes.span
        let hop = HopByHop(response.lines, in: source)
        let news = response.lines.filter { line in
            !hop.contains(line, in: source) && !Self.describesContent(line, in: source)
                && (!freshnessOnly || Self.isFreshnessField(line, in: source))
        }
        let old = bytes.span
        var head = ResponseHead(
            status: Self.status(bytes), bytes: bytes + response.bytes, lines: [])
        let isHidden = metadata.flags.contains(.overridesControl)
        for line in Self.lines(bytes) {
            switch line.id {
            case .date, .contentLength: continue
            case .cacheControl where isHidden, .expires where isHidden: continue
            default: break
            }
            let isReplaced = news.contains { new in
                new.id == line.id
                    && (new.id != .other
                        || source.matchesFieldName(
                            at: new.name.range, of: old, at: line.name.range))
            }
            if !isReplaced { head.lines.append(line) }
        }
        for line in news {
            head.lines.append(
                FieldLine(
                    id: line.id, name: Self.moved(line.name, by: bytes.count),
                    value: Self.moved(line.value, by: bytes.count)))
        }
        head.restoreCacheControl(metadata, present: FreshnessFields(news, in: source))
        return head
    }

    private static func describesContent(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        switch line.id {
        case .contentType, .contentEncoding, .contentRange, .contentLength: true
        case .other: bytes.matchesIgnoringCase("content-digest", at: line.name.range)
        default: false
        }
    }

    private static func isFreshnessField(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        switch line.id {
        case .age, .cacheControl, .date, .expires: true
        case .other:
            EffectiveCacheControl.targetedFields.contains {
                bytes.matchesIgnoringCase($0.name, at: line.name.range)
            }
        default: false
        }
    }

    private static func moved(_ extent: Extent, by offset: Int) -> Extent {
        Extent(start: Int(extent.start) + offset, count: Int(extent.count))
    }

    /// Which fields about freshness came.
    fileprivate struct FreshnessFields {
        var isOurs = false
        var isAny = false

        init(_ lines: [FieldLine], in bytes: Span<UInt8>) {
            for line in lines {
                switch line.id {
                case .cacheControl, .expires: isAny = true
                case .other:
                    let name = line.name.range
                    if ResponseFieldRules.isNuthatchCacheControl(bytes, at: name) { isOurs = true }
                    if bytes.matchesIgnoringCase("cdn-cache-control", at: name) { isAny = true }
                default: break
                }
            }
        }
    }
}

extension ResponseHead {
    /// Says again what the stored lines no longer say and the update did not.
    fileprivate mutating func restoreCacheControl(
        _ facts: EntryMetadata, present control: StoredHead.FreshnessFields
    ) {
        if control.isOurs { return }
        let value = Array(Self.control(facts).utf8)
        if facts.flags.contains(.nuthatchControl) {
            appendField(.other, "Nuthatch-Cache-Control", value)
        } else if facts.flags.contains(.overridesControl), !control.isAny {
            appendField(.cacheControl, "Cache-Control", value)
        }
    }

    /// The directives from which these facts come.
    private static func control(_ facts: EntryMetadata) -> String {
        let lifetime = max(.zero, facts.freshUntil - facts.generatedAt)
        var text = "max-age=\(lifetime.seconds)"
        if facts.flags.contains(.noCache) { text += ", no-cache" }
        if facts.flags.contains(.mustRevalidate) { text += ", must-revalidate" }
        if facts.flags.contains(.immutable) { text += ", immutable" }
        if facts.flags.contains(.allowsAuthorization) { text += ", public" }
        if facts.staleWhileRevalidateSeconds > 0 {
            text += ", stale-while-revalidate=\(facts.staleWhileRevalidateSeconds)"
        }
        if facts.staleIfErrorSeconds > 0 {
            text += ", stale-if-error=\(facts.staleIfErrorSeconds)"
        }
        return text
    }
}
