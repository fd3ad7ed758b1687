package import Ground

/// The validators of a stored response, compared with those of a later one (RFC 9110 §8.8).
package struct Validators: Hashable, Sendable {
    /// The entity tag with quotes and `W/`; empty if there is none.
    package var entityTag: [UInt8]
    /// The Last-Modified date; `nil` if there is none.
    package var lastModified: WallTime?
    /// The date of the response, which decides which of several is the most recent.
    package var date: WallTime

    /// Creates validators from their parts.
    package init(entityTag: [UInt8], lastModified: WallTime?, date: WallTime) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.date = date
    }

    /// Creates the validators of a stored response from its rendered head and metadata.
    package init(_ bytes: [UInt8], metadata: EntryMetadata) {
        self.init(
            entityTag: Array(bytes[metadata.entityTag.range]), lastModified: metadata.lastModified,
            date: metadata.date)
    }

    /// Returns true if `tag`, which lies in `bytes`, matches the entity tag.
    func matches(
        _ tag: EntityTag, in bytes: Span<UInt8>, by comparison: EntityTag.Comparison
    ) -> Bool {
        let stored = entityTag.span
        guard let own = EntityTag(stored, at: 0..<stored.count) else { return false }
        return tag.matches(in: bytes, own, in: stored, by: comparison)
    }
}

/// Selects the stored responses that a 304 confirms (RFC 9111 §4.3.4).
package enum Freshening {
    /// Returns the indexes of the stored responses to update; the most recent, which is sent to the
    /// client, first.
    ///
    /// A strong tag confirms every response with that tag. A weak tag, or a date without a tag,
    /// confirms the most recent response that matches. A 304 without validators confirms the stored
    /// response if only one was validated; so does a date if that response has none. The result is
    /// empty if nothing is confirmed; the request must then be repeated without conditions.
    ///
    /// - Parameters:
    ///   - response: the 304.
    ///   - stored: the validators of the responses that were validated.
    ///   - received: when the 304 was received; places years of two digits.
    /// - Returns: indexes in `stored`.
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

    /// Sorts the newest first; of equal dates the earlier index comes first.
    private static func newestFirst(_ places: [Int], of stored: [Validators]) -> [Int] {
        places.sorted { first, second in
            let dates = (stored[first].date, stored[second].date)
            return dates.0 == dates.1 ? first < second : dates.0 > dates.1
        }
    }
}

/// The effect of a response to HEAD on a stored response to GET for the same request (RFC 9111
/// §4.3.5).
package enum HeadFreshening: Hashable, Sendable {
    /// The representation is unchanged: update its freshness with
    /// ``StoredHead/updated(with:metadata:freshnessOnly:)``.
    case update
    /// The origin's representation differs: the stored response must be revalidated before use.
    case invalidate
    /// The response says nothing about the stored one: it is an error, or GET would have another
    /// status.
    case noEffect

    /// Compares a response to HEAD with the stored response.
    ///
    /// Validators and lengths that the response to HEAD lacks, or that cannot be parsed, count as
    /// unchanged.
    ///
    /// - Parameters:
    ///   - head: the head of the response to HEAD.
    ///   - status: the status code of the stored response.
    ///   - validators: the validators of the stored response.
    ///   - size: the length of the stored body in bytes.
    ///   - received: when the response to HEAD was received; places years of two digits.
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

    /// Returns true for a status that GET would have returned too, to all clients: not for
    /// failures, client-specific statuses, or HEAD not being implemented.
    private static func describesResource(_ status: UInt16) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 410: true
        default: false
        }
    }

    /// Returns false if ETag or Last-Modified of `head` differs from the stored validator.
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

    /// Returns the first Content-Length; `nil` if there is none or it is malformed.
    private static func length(_ head: ResponseHead) -> UInt64? {
        head.first(.contentLength).flatMap { head.bytes.span.decimal(at: $0.range) }
    }
}
