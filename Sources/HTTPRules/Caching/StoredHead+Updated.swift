package import Ground

extension StoredHead {
    /// Returns the stored head merged with a 304 that confirmed it, or a 200 to HEAD that agrees
    /// with it, as if received whole now (RFC 9111 §3.2, §4.3.4, §4.3.5).
    ///
    /// The result is evaluated and rendered like a new response. Each field of `response` replaces
    /// the stored one of its name, except hop-by-hop fields and those that describe the stored
    /// content: Content-Type, Content-Encoding, Content-Range, Content-Length, Content-Digest. Date
    /// and Age are those of `response` only, because the stored ones count from an earlier moment.
    ///
    /// Directives that the rendered lines no longer hold are restored from `metadata`: see
    /// ``EntryFlags/nuthatchControl`` and ``EntryFlags/overridesControl``.
    ///
    /// - Parameters:
    ///   - response: the head of the 304, or of the 200 to HEAD.
    ///   - metadata: the metadata of the stored response.
    ///   - freshnessOnly: true to use only Date, Age and the freshness fields of `response`, so
    ///     that a response to HEAD, which any client can request with its own fields, replaces
    ///     nothing else.
    /// - Returns: the merged head with the stored status; its bytes begin with those of both heads.
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

    /// The presence of freshness fields in an update.
    fileprivate struct FreshnessFields {
        /// True if the update has Nuthatch-Cache-Control.
        var isOurs = false
        /// True if the update has another freshness field: Cache-Control, Expires or
        /// CDN-Cache-Control.
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
    /// Adds the directives that neither the stored lines nor the update hold; none if the update
    /// has Nuthatch-Cache-Control.
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

    /// Returns the directives that produce this metadata.
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
