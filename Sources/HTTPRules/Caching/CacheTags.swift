import Ground

/// The tags of an answer, by which it can be purged together with others.
package struct CacheTags: Hashable, Sendable {
    /// Tags of an answer at most.
    package static let countMax = 1000
    /// Bytes of one tag at most.
    package static let tagBytesMax = 1024
    /// Bytes of all tags at most.
    package static let bytesMax = 16_384

    /// Each once, in the order they were met, byte by byte as the origin wrote them.
    package private(set) var tags: [[UInt8]] = []
    /// How many were left out because a limit was passed; purging those does not reach the answer.
    package private(set) var droppedCount = 0

    /// No tags.
    package init() {}

    /// The tags in all lines of `head` that are fields of `fields`.
    package init(_ head: ResponseHead, fields: [TagField] = TagField.defaults) {
        self.init(head.lines, in: head.bytes.span, fields: fields)
    }

    /// The same of any lines; their extents lie in `bytes`.
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

/// A field in which an origin names tags, and what stands between them.
package struct TagField: Hashable, Sendable {
    private let name: [UInt8]
    private let splitsAtWhitespace: Bool
    private let splitsAtCommas: Bool

    /// The field with this name; nil if it cannot be one.
    ///
    /// Tags in Cache-Tag lie between commas, those in Surrogate-Key between white space, and those
    /// in xkey and any other field between both.
    package init?(_ name: String) {
        guard !name.isEmpty, name.utf8.allSatisfy(ByteSet.token.contains) else { return nil }
        self.init(lowercase: name.utf8.map(ASCII.lowercased))
    }

    private init(lowercase name: [UInt8]) {
        self.name = name
        splitsAtWhitespace = name != Array("cache-tag".utf8)
        splitsAtCommas = name != Array("surrogate-key".utf8)
    }

    /// Surrogate-Key, Cache-Tag and xkey.
    package static let defaults = ["surrogate-key", "cache-tag", "xkey"].map {
        TagField(lowercase: Array($0.utf8))
    }

    /// The first of `fields` whose name lies in `range`.
    fileprivate static func first(
        of fields: [TagField], namedIn bytes: Span<UInt8>, at range: Range<Int>
    ) -> TagField? {
        for field in fields where FieldSyntax.matchesName(field.name, bytes, at: range) {
            return field
        }
        return nil
    }

    /// The next tag in `range`, never empty; `cursor` begins at the range's start.
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
        FieldSyntax.isWhitespace(byte)
            ? splitsAtWhitespace : splitsAtCommas && byte == UInt8(ascii: ",")
    }
}

/// All tags that an entry is kept with: the names by which a purge of a URL, a prefix or a host
/// finds it beside its key, and what its origin says.
package struct EntryTags: Hashable, Sendable {
    /// Tags of an entry at most; as many as peers take.
    package static let countMax = CacheTags.countMax

    /// Each once; first those of ``URLName``, which no limit cuts.
    package private(set) var tags: [[UInt8]] = []
    /// How many of the origin's are left out; purging those does not reach the entry.
    package private(set) var droppedCount: Int

    /// The tags of an entry under `key` whose answer came with `answer`.
    ///
    /// `urls` are canonical keys of what the entry was made from: the last URL to which redirects
    /// led, the original of a transformed URL (``OriginalRule``), and of an answer of the site `*`
    /// the URL that the origin was asked for. Purging any of them is purging the entry. Other
    /// sites' answers are found by the origin's URL without a tag (``PurgeTarget/targets(_:)``): an
    /// entry without tags need not be looked up again for each purge of another URL.
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
