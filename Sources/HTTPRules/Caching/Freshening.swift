package import Ground

/// What a stored answer is compared by with a later one (RFC 9110 §8.8).
package struct Validators: Hashable, Sendable {
    /// With quotes and `W/`; empty if there is none.
    package var entityTag: [UInt8]
    package var lastModified: WallTime?
    /// By which of several answers the most recent is told.
    package var date: WallTime

    package init(entityTag: [UInt8], lastModified: WallTime?, date: WallTime) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.date = date
    }

    /// Those of an answer that is stored with these rendered bytes.
    package init(_ bytes: [UInt8], metadata: EntryMetadata) {
        self.init(
            entityTag: Array(bytes[metadata.entityTag.range]), lastModified: metadata.lastModified,
            date: metadata.date)
    }

    /// True if the tag that is `tag` in `bytes` matches.
    func matches(
        _ tag: EntityTag, in bytes: Span<UInt8>, by comparison: EntityTag.Comparison
    ) -> Bool {
        let stored = entityTag.span
        guard let own = EntityTag(stored, at: 0..<stored.count) else { return false }
        return tag.matches(in: bytes, own, in: stored, by: comparison)
    }
}

/// Which of the stored answers that the origin was asked about a 304 confirms (RFC 9111 §4.3.4).
package enum Freshening {
    /// The places of the answers that are to be updated; the most recent, with which the request
    /// is answered, first.
    ///
    /// A strong tag confirms every answer that has it; a weak one, or a date without a tag, the
    /// most recent answer that has it. A 304 without validators confirms what was asked about if
    /// that was one answer. Empty if it confirms none: then the request is made again without
    /// condition.
    ///
    /// - Parameters:
    ///   - response: the 304.
    ///   - stored: the answers whose validators were sent.
    ///   - received: when it came; places years of two digits.
    /// - Returns: places in `stored`.
    package static func responsesToUpdate(
        by response: ResponseHead, of stored: [Validators], received: WallTime
    ) -> [Int] {
        let bytes = response.bytes.span
        if let value = response.first(.etag), let tag = EntityTag(bytes, at: value.range) {
            let places = stored.indices.filter { place in
                stored[place].matches(tag, in: bytes, by: tag.isWeak ? .weak : .strong)
            }
            let ordered = newestFirst(places, of: stored)
            return tag.isWeak ? Array(ordered.prefix(1)) : ordered
        }
        if let value = response.first(.lastModified),
            let modified = HTTPDate.parse(bytes, at: value.range, now: received)
        {
            let isOnly = stored.count == 1
            let places = stored.indices.filter { place in
                let own = stored[place].lastModified
                return own == modified || (own == nil && isOnly)
            }
            return Array(newestFirst(places, of: stored).prefix(1))
        }
        return stored.count == 1 ? [0] : []
    }

    /// Of answers of one date the one given first comes first.
    private static func newestFirst(_ places: [Int], of stored: [Validators]) -> [Int] {
        places.sorted { first, second in
            let dates = (stored[first].date, stored[second].date)
            return dates.0 == dates.1 ? first < second : dates.0 > dates.1
        }
    }
}

/// What an answer to HEAD says of a stored answer to GET that the same request would have been
/// given (RFC 9111 §4.3.5).
package enum HeadFreshening: Hashable, Sendable {
    /// It is the same: its freshness is updated with
    /// ``StoredHead/updated(with:facts:freshnessOnly:)``.
    case update
    /// It is not what the origin has now, and is not to be used unasked.
    case invalidate
    /// Nothing: an error, or something that GET would not say.
    case noEffect

    /// - Parameters:
    ///   - head: the answer to HEAD.
    ///   - status: the stored answer's status.
    ///   - validators: the stored answer's.
    ///   - size: length of the stored body in bytes.
    ///   - received: when the answer to HEAD came; places years of two digits.
    package init(
        _ head: ResponseHead, stored status: UInt16, validators: Validators, size: UInt64,
        received: WallTime
    ) {
        guard head.status == status else {
            self = Self.describesResource(head.status) ? .invalidate : .noEffect
            return
        }
        let isSame =
            Self.matches(head, with: validators, received)
            && Self.length(head).map { $0 == size } ?? true
        self = isSame ? .update : .invalidate
    }

    /// True for a status that GET would have had too, and for all clients: not for failures, for
    /// answers to one client's rights or conditions, and for HEAD not being known.
    private static func describesResource(_ status: UInt16) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 410: true
        default: false
        }
    }

    private static func matches(
        _ head: ResponseHead, with validators: Validators, _ received: WallTime
    ) -> Bool {
        let bytes = head.bytes.span
        if let value = head.first(.etag), let tag = EntityTag(bytes, at: value.range),
            !validators.matches(tag, in: bytes, by: .weak)
        {
            return false
        }
        guard let value = head.first(.lastModified),
            let modified = HTTPDate.parse(bytes, at: value.range, now: received)
        else { return true }
        return modified == validators.lastModified
    }

    private static func length(_ head: ResponseHead) -> UInt64? {
        head.first(.contentLength).flatMap { head.bytes.span.decimal(at: $0.range) }
    }
}
