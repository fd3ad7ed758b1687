import Ground

/// The tags that an origin gives a response, for purging it together with others.
package struct CacheTags: Hashable, Sendable {
    /// The maximum number of tags of a response.
    package static let countMax = 1000
    /// The maximum length of one tag in bytes.
    package static let tagBytesMax = 1024
    /// The maximum length of all tags together in bytes.
    package static let bytesMax = 16_384

    /// The distinct tags, in the order received, byte by byte as the origin wrote them.
    package private(set) var tags: [[UInt8]] = []
    /// The number of tags dropped because of a limit; purging those does not reach the response.
    package private(set) var droppedCount = 0

    /// Creates an empty set of tags.
    package init() {}

    /// Collects the tags of all lines of `head` whose name is in `fields`.
    package init(_ head: ResponseHead, fields: [TagField] = TagField.defaults) {
        self.init(head.lines, in: head.bytes.span, fields: fields)
    }

    /// Collects the tags of all `lines` whose name is in `fields`.
    ///
    /// - Parameters:
    ///   - lines: the field lines; their extents lie in `bytes`.
    ///   - bytes: the bytes of the head.
    ///   - fields: the fields that carry tags.
    package init(_ lines: [FieldLine], in bytes: Span<UInt8>, fields: [TagField]) {
        var seen: Set<[UInt8]> = []
        var bytesCount = 0
        for line in lines {
            guard let field = TagField.first(of: fields, namedIn: bytes, at: line.name.range) else {
                continue
            }
            var cursor = line.value.range.lowerBound
            while let tag = field.next(bytes, at: line.value.range, cursor: &cursor) {
                guard tag.count <= Self.tagBytesMax else {
                    droppedCount += 1
                    continue
                }
                let text = bytes.copy(tag)
                if seen.contains(text) { continue }
                guard tags.count < Self.countMax, bytesCount + tag.count <= Self.bytesMax else {
                    droppedCount += 1
                    continue
                }
                seen.insert(text)
                tags.append(text)
                bytesCount += tag.count
            }
        }
    }
}

/// A field in which an origin names tags, and the separators between them.
package struct TagField: Hashable, Sendable {
    private let name: [UInt8]
    private let splitsAtWhitespace: Bool
    private let splitsAtCommas: Bool

    /// Creates the field with this name; `nil` if `name` is not a field name.
    ///
    /// Tags in Cache-Tag are separated by commas, in Surrogate-Key by white space, in xkey and any
    /// other field by both.
    package init?(_ name: String) {
        guard !name.isEmpty, name.utf8.allSatisfy(ByteSet.token.contains) else { return nil }
        self.init(lowercase: name.utf8.map(ASCII.lowercased))
    }

    private init(lowercase name: [UInt8]) {
        self.name = name
        splitsAtWhitespace = name != Array("cache-tag".utf8)
        splitsAtCommas = name != Array("surrogate-key".utf8)
    }

    /// The default fields: Surrogate-Key, Cache-Tag and xkey.
    package static let defaults = ["surrogate-key", "cache-tag", "xkey"].map {
        TagField(lowercase: Array($0.utf8))
    }

    /// Returns the first of `fields` that has the name in `range` of `bytes`; `nil` if none has.
    fileprivate static func first(
        of fields: [TagField], namedIn bytes: Span<UInt8>, at range: Range<Int>
    ) -> TagField? {
        for field in fields where bytes.matchesFieldName(at: range, of: field.name) {
            return field
        }
        return nil
    }

    /// Returns the next tag in `range`, never empty; `nil` at the end.
    ///
    /// `cursor` must start at the lower bound of `range`.
    fileprivate func next(
        _ bytes: Span<UInt8>, at range: Range<Int>, cursor: inout Int
    ) -> Range<Int>? {
        while cursor < range.upperBound {
            var end = cursor
            while end < range.upperBound, !separates(bytes[end]) { end += 1 }
            let tag = FieldSyntax.trimmed(bytes, at: cursor..<end)
            cursor = end + 1
            if !tag.isEmpty { return tag }
        }
        return nil
    }

    private func separates(_ byte: UInt8) -> Bool {
        ASCII.isWhitespace(byte)
            ? splitsAtWhitespace : splitsAtCommas && byte == UInt8(ascii: ",")
    }
}

/// The tags stored with an entry: the further names by which a purge of a URL, prefix or host finds
/// it, and the tags of its origin.
package struct EntryTags: Hashable, Sendable {
    /// The maximum number of tags of an entry; peers accept as many.
    package static let countMax = CacheTags.countMax

    /// The distinct tags; those that name URLs (``URLName``) come first and are never dropped.
    package private(set) var tags: [[UInt8]] = []
    /// The number of the origin's tags that were dropped; purging those does not reach the entry.
    package private(set) var droppedCount: Int

    /// Creates the tags of an entry.
    ///
    /// A purge of any of `urls` purges the entry; one that has the same name as `key` needs no tag.
    /// Responses of other sites than `*` are found by the origin's URL without a tag
    /// (``PurgeTarget/expanded(_:)``), so that an entry without tags need not be looked up again
    /// for each purge of another URL.
    ///
    /// - Parameters:
    ///   - key: the entry's cache key.
    ///   - cacheTags: the tags that the origin sent with the response.
    ///   - urls: canonical keys of what the entry was made from: the last URL of a redirect chain,
    ///     the original of a transformed URL (``OriginalRule``), and for a response of the site `*`
    ///     the URL requested from the origin.
    package init(key: [UInt8], cacheTags: CacheTags = CacheTags(), urls: [[UInt8]] = []) {
        droppedCount = cacheTags.droppedCount
        let own = URLName.name(ofKey: key)
        let canonical = URLName.canonical(ofKey: key).map { [$0] } ?? []
        for name in canonical + urls.map({ Array(URLName.name(ofKey: $0)) }) {
            let tag = URLName.tag(name[...])
            if !name.elementsEqual(own), !tags.contains(tag) { tags.append(tag) }
        }
        for tag in cacheTags.tags {
            guard tag.first != URLName.tagPrefix, tags.count < Self.countMax else {
                droppedCount += 1
                continue
            }
            tags.append(tag)
        }
    }
}
