import Ground

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
